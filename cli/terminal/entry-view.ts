import { dialects } from '@parley/wire/codecs/dialects'
import { type ReadEntry, readEntry } from '@parley/wire/codecs/parley/registry'
import { type Io, print, printJson } from './io.ts'
import { oneLine } from './printable.ts'

/** Registries of other implementations list skills by their id. */
export function skillName(skill: string | { id?: string | undefined }): string {
  return typeof skill === 'string' ? skill : (skill.id ?? '')
}

type Relay = NonNullable<ReadEntry['relay']>

/** Returns the protocol in which a foreign agent is called. The gateway may know more dialects than this program. */
export function dialectTitle({ dialect = '', version }: Pick<Relay, 'dialect' | 'version'>): string {
  if (dialect === 'mcp') return `MCP ${version ?? ''}`.trim()
  return dialects.find(({ name }) => name === dialect)?.title ?? dialect
}

function relayLine(relay: Relay): string {
  const { streaming, security = [] } = relay
  return [
    dialectTitle(relay),
    ...(relay.dialect === 'mcp' ? [] : [streaming === true ? 'streaming' : 'without streaming']),
    security.length === 0
      ? 'no credential required'
      : `credential: ${security.map((scheme) => schemes[scheme] ?? scheme).join(' or ')}`,
  ].join(', ')
}

const schemes: Record<string, string> = {
  bearer: 'bearer token',
  apiKey: 'API key',
  oauth2: 'OAuth2 client credentials',
}

/** The option of `parley admit` that sets the credential of a foreign agent. */
export function credentialOption(relay: Relay | undefined): string {
  return relay?.security?.length ? ' --credential @<file>' : ''
}

const reasons: Record<string, string> = {
  unsigned: 'its card has no signature',
  partial: 'the signature does not cover the security schemes of the card',
  malformed: 'the signature in its card is malformed',
  too_many_signatures: 'its card has too many signatures',
  unsupported_algorithm: 'its card is signed with another algorithm than EdDSA or ES256',
  unknown_key: 'the key that signed its card is not in the DID document',
  mismatch: 'the signature does not match its card',
  other_origin: 'its card is signed by a DID of another origin',
  other_address: 'the signed card lists no interface at its address',
  unchecked: 'the signature in its card has not been checked',
}

/** Returns why a foreign agent is not verified. */
function reasonOf({ relay }: ReadEntry): string {
  const reason = relay?.dialect === 'mcp' ? undefined : relay?.cardSignature?.reason
  return reason === undefined ? '' : `: ${reasons[reason] ?? reason}`
}

/** Prints one entry as lines of text or as JSON. */
export function printEntry(io: Io, entry: unknown, json: true | undefined): void {
  if (json) return printJson(io, entry)
  const shown = readEntry(entry)
  const { slug, did, url, status, revision, verified, admitted, quarantine } = shown
  const { skills, cardChanges, lookAlikes, relay } = shown
  const rows: [string, string][] = [
    ['agent', slug ?? ''],
    ['did', did ?? 'none'],
    ['address', url ?? ''],
    ['status', status ?? ''],
    ...(relay === undefined ? [] : [['relayed', relayLine(relay)] satisfies [string, string]]),
    ['verified', verified === true ? 'yes' : `no${reasonOf(shown)}`],
    ['admitted', admitted === true ? 'yes' : `no: npx parley admit ${slug ?? ''}${credentialOption(relay)}`],
    ...(quarantine ? ([['quarantine', quarantine.reason ?? '']] as [string, string][]) : []),
    ['skills', (skills ?? []).map(skillName).join(', ')],
    ...(revision ? ([['revision', revision]] as [string, string][]) : []),
    ...(cardChanges?.length
      ? ([['changed', cardChanges.map(({ field }) => field).join(', ')]] as [string, string][])
      : []),
    ...(lookAlikes?.length
      ? ([['looks like', lookAlikes.map(({ agent, because }) => `${agent} (${because})`).join(', ')]] as [
          string,
          string,
        ][])
      : []),
  ]
  for (const [name, value] of rows) print(io, `${name.padEnd(10)}  ${oneLine(value, 200)}\n`)
}
