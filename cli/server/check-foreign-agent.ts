import { OutgoingRefused } from '@parley/kit/net/outgoing-errors'
import { outgoingUrl, shownUrl } from '@parley/kit/net/outgoing-url'
import { dialectNamed, versionHeaders } from '@parley/wire/codecs/dialects'
import {
  type AgentSecurity,
  type ForeignInterface,
  readForeignInterface,
  unsupportedSecurityText,
} from '@parley/wire/codecs/foreign-card'
import { ParleyError } from '@parley/wire/errors'
import type { JsonObject } from '@parley/wire/model/task'
import type { Finding, ReadAnswer } from './check-agent.ts'
import { resolverAt } from './verify-card.ts'

export interface ForeignCheck {
  /** The address of the agent, without the path of its card. */
  base: string
  card: JsonObject
  /** Where the card was read. */
  path: string
  /** A credential for the agent, which is sent once. */
  credential: string | undefined
  read: ReadAnswer
  /** Describes why there was no answer. */
  reasonOf: (error: Error, url: string) => string
}

/** Checks an A2A server of another vendor as the registry and the relay of a gateway would use it. */
export async function checkForeignAgent(check: ForeignCheck): Promise<Finding[]> {
  const { card, base } = check
  const found = readForeignInterface(card)
  if (typeof found === 'string')
    return [await cardFinding(check), { what: 'interface', fix: `${found.replace(/\.$/, '')}.` }]
  const streaming = found.streaming ? 'streaming' : 'without streaming (tasks are polled)'
  const info = `${versionOf(found, card)}, JSON-RPC at ${shownUrl(found.url)}, ${streaming}`
  const addresses = addressFindings([base, found.url, ...found.security.flatMap(tokenUrlOf)])
  return [
    await cardFinding(check),
    { what: 'interface', info },
    ...addresses,
    skillsFinding(card),
    securityFinding(found),
    await signatureFinding(check, found.url),
    ...(addresses.some(({ fix }) => fix !== undefined) ? [] : [await callOrReason(found, check)]),
  ]
}

/** Returns the version in which the agent is called. The dialect of 0.3 is also that of 0.2. */
function versionOf(found: ForeignInterface, { protocolVersion: stated }: JsonObject): string {
  const { title, version } = dialectNamed(found.dialect)
  const isOlder = version === undefined && typeof stated === 'string' && stated.startsWith('0.2')
  return isOlder ? `A2A ${stated.slice(0, 20)}, called as ${title}` : title
}

/** Applies the rules of the registry. */
async function cardFinding({ card, path }: ForeignCheck): Promise<Finding> {
  const what = 'card'
  const { issuesIn, readCard } = await import('@parley/gateway/registry/card')
  try {
    readCard(card)
    return { what, info: `an A2A card at ${path}` }
  } catch (error) {
    if (!(error instanceof ParleyError)) throw error
    return { what, fix: `The registry refuses the card: ${issuesIn(error)}.` }
  }
}

const tokenUrlOf = (scheme: AgentSecurity) => (scheme.kind === 'oauth2' ? [scheme.tokenUrl] : [])

export function addressFindings(urls: readonly string[]): Finding[] {
  const fault = urls.flatMap(addressFinding).find(({ fix }) => fix !== undefined)
  if (fault !== undefined) return [fault]
  const urlPerHost = new Map(urls.map((url) => [URL.parse(url)?.hostname, url]))
  const notes = [...urlPerHost.values()].flatMap(addressFinding)
  return notes.length === 0 ? [{ what: 'addresses' }] : notes
}

function addressFinding(url: string): Finding[] {
  const what = 'addresses'
  try {
    outgoingUrl(url)
    return []
  } catch (error) {
    if (!(error instanceof OutgoingRefused)) throw error
    const host = URL.parse(url)?.hostname
    const isForOperator = error.reason === 'not_public' || error.reason === 'local_name'
    if (!isForOperator || host === undefined) return [{ what, fix: `${shownUrl(url)}: ${error.message}.` }]
    const isHere = error.message.includes('loopback')
    const how = isHere
      ? `A gateway in production accepts it only if REGISTRY_ALLOWED_HOSTS lists ${host}`
      : `If the agent belongs there, list ${host} in REGISTRY_ALLOWED_HOSTS of the gateway`
    return [{ what, note: `${url}: ${error.message}. ${how}.` }]
  }
}

function skillsFinding({ skills }: JsonObject): Finding {
  const what = 'skills'
  if (Array.isArray(skills) && skills.length > 0) return { what }
  return { what, fix: 'The card lists no skills, so no work is routed to the agent. It can be named.' }
}

function securityFinding({ security, unsupportedSecurity }: ForeignInterface): Finding {
  const what = 'credential'
  if (unsupportedSecurity) return { what, fix: `${unsupportedSecurityText}.` }
  if (security.length === 0) return { what, info: 'the card requires none' }
  const valueOf = { bearer: 'the bearer token', apiKey: 'the API key', oauth2: 'client-id:client-secret' }
  const kinds = security.map(({ kind }) => kind).join(' or ')
  const values = [...new Set(security.map(({ kind }) => valueOf[kind]))].join(' or ')
  const names = security.map(({ scheme = '' }) => scheme).join(', ')
  const which = security.length > 1 ? `, and --scheme if it fits several of ${names}` : ''
  return { what, info: `${kinds}: npx parley admit <agent> --credential @<file with ${values}>${which}` }
}

async function signatureFinding({ card, base }: ForeignCheck, interfaceUrl: string): Promise<Finding> {
  const what = 'signature'
  const { verifyCardProof } = await import('@parley/gateway/registration/card-proof')
  const proof = await verifyCardProof(card, { url: base, interfaceUrl, resolve: await resolverAt(base) })
  if (!proof.verified)
    return { what, note: `${proof.message} The agent can be registered, but not verified.` }
  if (proof.covers !== 'a2a-without-security') return { what, info: `by ${proof.did}` }
  return { what, note: 'The signature does not cover the security schemes. The agent is not verified.' }
}

function callOrReason(found: ForeignInterface, check: ForeignCheck): Promise<Finding> {
  return callFinding(found, check).catch((error: Error) => ({
    what: 'call',
    fix: `No answer from ${found.url}: ${check.reasonOf(error, found.url)}.`,
  }))
}

/** Reads a task that does not exist, which has no effect at the agent. */
async function callFinding(found: ForeignInterface, { credential, read }: ForeignCheck): Promise<Finding> {
  const what = 'call'
  const codec = dialectNamed(found.dialect)
  const id = crypto.randomUUID()
  const params = codec.writeParams('getTask', { taskId: crypto.randomUUID() })
  const { status, json } = await read(found.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...versionHeaders(codec),
      ...(credential !== undefined && headerFor(found.security[0], credential)),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id, method: codec.methodOf('getTask'), params }),
  })
  if (status === 401 || status === 403) return refusedFinding(found, status, credential)
  const error = codec.readError(json)
  if (error?.error === 'TaskNotFound') return { what, info: 'an unknown task is reported as such' }
  const answer = error === undefined ? `HTTP ${status} without a JSON-RPC error` : `“${error.message}”`
  return {
    what,
    fix: `A request for a task that does not exist must return the error -32001; it returns ${answer}.`,
  }
}

function refusedFinding(found: ForeignInterface, status: number, credential: string | undefined): Finding {
  const what = 'call'
  if (credential !== undefined)
    return { what, fix: `The agent refuses the credential of --token (${status}).` }
  if (found.security.length > 0)
    return { what, note: `The agent requires a credential (${status}). Try one with --token.` }
  return { what, fix: `The agent requires a credential (${status}), and its card lists no supported scheme.` }
}

function headerFor(scheme: AgentSecurity | undefined, value: string): Record<string, string> {
  if (scheme?.kind === 'apiKey') return scheme.in === 'header' ? { [scheme.name]: value } : {}
  return scheme?.kind === 'oauth2' ? {} : { authorization: `Bearer ${value}` }
}
