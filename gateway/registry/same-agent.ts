import { ParleyError } from '@parley/wire/errors'
import { z } from 'zod'
import type { AgentEntry } from './entry.ts'
import type { EntryIndex } from './entry-index.ts'

type Registrant = Pick<
  AgentEntry,
  'url' | 'owner' | 'origin' | 'verified' | 'did' | 'keys' | 'document' | 'cardSignature'
>

/**
 * Finds the entry of the agent that registers by its DID or, without a DID, by its slug and address. A registration that
 * would take over another agent's DID, slug or address is refused.
 * @throws ParleyError Conflict with the `data.reason` `did`, `owner`, `key`, `slug` or `url`
 */
export function sameAgent(index: EntryIndex, registrant: Registrant, slug: string): AgentEntry | undefined {
  const known = registrant.did === undefined ? undefined : index.byDid(registrant.did)
  const holder = known ?? index.bySlug(slug)
  if (known === undefined && holder !== undefined && !isSameWithoutDid(holder, registrant)) {
    throw slugTakenError(slug)
  }
  const entryAtUrl = index.byUrl(registrant.url)
  // The supervisor has bound the port, so the previous agent at this address has stopped.
  if (entryAtUrl !== undefined && entryAtUrl.id !== holder?.id && registrant.origin === 'registered') {
    throw conflict('url', 'Another agent is registered at this address')
  }
  if (holder !== undefined && registrant.origin === 'registered') checkRenewal(holder, registrant)
  return holder
}

/** @throws ParleyError Conflict if the entry has been removed, or has another address or owner */
export function checkRenewed(entry: AgentEntry | undefined, { url, owner }: Registrant): void {
  const isSame = entry?.left === undefined && entry?.url === url && entry.owner === owner
  if (!isSame) throw entryChangedError()
}

function isSameWithoutDid(holder: AgentEntry, registrant: Registrant): boolean {
  return holder.did === undefined && registrant.did === undefined && holder.url === registrant.url
}

/** Returns the entries at the registrant's address or with its DID that the registrant replaces. */
export function replacedEntries(index: EntryIndex, registrant: Registrant): AgentEntry[] {
  const { url, did = '' } = registrant
  const stale = [index.byUrl(url), index.byDid(did)].filter((entry) => entry !== undefined)
  return [...new Set(stale)].filter((entry) => isReplaceable(entry, registrant))
}

/**
 * Returns whether an agent with a proven key replaces an unproven entry. At the same address, the previous agent no
 * longer exists, and its entry is replaced unless an operator quarantined it. An entry with the same DID at another
 * address belonged to an impostor.
 */
function isReplaceable(holder: AgentEntry, registrant: Registrant): boolean {
  if (holder.verified || holder.origin === 'supervised' || !provedKey(registrant)) return false
  if (holder.did === registrant.did) return holder.url !== registrant.url && holder.owner !== registrant.owner
  return holder.url === registrant.url && holder.quarantine === undefined
}

/**
 * Returns whether the entry is a former identity of the supervised agent, with a lost key or another author. It is not
 * if a process still runs under that identity or the entry belongs to another machine.
 */
export function isFormerIdentity(
  holder: Pick<AgentEntry, 'did' | 'status' | 'host'>,
  registrant: Pick<AgentEntry, 'did' | 'host'>,
): boolean {
  const isOurs = holder.host === undefined || holder.host === registrant.host
  return isOurs && holder.status !== 'ready' && registrant.did !== undefined && holder.did !== registrant.did
}

function checkRenewal(holder: AgentEntry, registrant: Registrant): void {
  if (holder.origin === 'supervised')
    throw conflict(
      'did',
      'The gateway runs this agent itself; once it no longer does, an operator can remove the entry',
    )
  if (holder.owner !== registrant.owner && !mayTakeOver(holder, registrant))
    throw conflict('owner', 'The agent belongs to another owner')
  if (!holder.verified) return
  if (holder.did === undefined) return checkSigner(holder, registrant)
  const newest = holder.keys?.at(-1)
  const sameKey = newest !== undefined && newest === registrant.keys?.at(-1)
  if (!registrant.verified && (!sameKey || holder.url !== registrant.url))
    throw conflict('did', 'The agent is verified: changing its key or address requires a proof with its key')
  if (newest !== undefined && !keyChain(registrant).includes(newest))
    throw conflict('key', 'The key of the agent has changed without a proof by the previous key')
  const retired = retiredKeys(holder)
  if (registrant.keys?.some((key) => retired.has(key)))
    throw conflict('key', 'The DID document of the agent is outdated: it lists a retired key')
}

/** A foreign agent is verified by the signature in its card. The signer stays the same until an operator removes the entry. */
function checkSigner(holder: AgentEntry, registrant: Registrant): void {
  if (!registrant.verified)
    throw conflict('did', 'The card of the agent was signed and has no valid signature any more')
  if (signerOf(holder) !== signerOf(registrant))
    throw conflict('key', 'The card of the agent is signed by another DID than before')
}

function signerOf({ cardSignature }: Pick<AgentEntry, 'cardSignature'>): string | undefined {
  return cardSignature?.verified === true ? cardSignature.kid.replace(/#.*$/, '') : undefined
}

/** Any client can register a URL with a signed card. The signature does not show that the client speaks for the agent. */
function provedKey({ verified, did }: Registrant): boolean {
  return verified && did !== undefined
}

/**
 * Returns the keys from which the newest one descends. A did:parley document, which has been verified, lists all keys,
 * each signed by its predecessor. Documents of other methods do not link keys.
 */
function keyChain({ did, keys = [], document }: Registrant): string[] {
  if (did?.startsWith('did:parley:') !== true) return keys.slice(-1)
  return [...keys, ...keyHistoryOf(document).flatMap(({ publicKeyBase58 }) => publicKeyBase58 ?? [])]
}

/** Returns the retired keys. An old document that lists one of them as current is refused. */
function retiredKeys({ document }: AgentEntry): Set<unknown> {
  const retired = keyHistoryOf(document).filter((key) => key.retired === true)
  return new Set(retired.map((key) => key.publicKeyBase58))
}

const historyKey = z.object({ publicKeyBase58: z.string().optional(), retired: z.unknown().optional() })

function keyHistoryOf(document: AgentEntry['document']) {
  return z.array(historyKey).safeParse(document?.['keyHistory']).data ?? []
}

/**
 * Returns whether the registrant takes precedence: an agent over other owners of its DID, a proven over an unproven one.
 */
function mayTakeOver(holder: AgentEntry, registrant: Registrant): boolean {
  return provedKey(registrant) && (registrant.owner === registrant.did || !holder.verified)
}

export function slugTakenError(slug: string): ParleyError {
  return conflict(
    'slug',
    `The slug ${slug} belongs to another agent: change the name of this one, or have an operator remove the other`,
    { slug },
  )
}

export function entryChangedError(): ParleyError {
  return conflict('changed', 'The agent has changed since it was reviewed: review it again')
}

function conflict(reason: string, message: string, more: Record<string, string> = {}): ParleyError {
  return new ParleyError('Conflict', { message, data: { reason, ...more } })
}
