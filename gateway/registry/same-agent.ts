import { ParleyError } from '@parley/wire/errors'
import type { AgentEntry } from './entry.ts'
import type { EntryIndex } from './entry-index.ts'

type Coming = Pick<AgentEntry, 'url' | 'owner' | 'origin' | 'verified' | 'did' | 'keys' | 'document'>

/**
 * The entry of the agent that registers: that of its DID; without DID that of its slug and address. Nobody speaks for
 * another: who comes with a DID, slug or address of another agent is refused.
 * @throws ParleyError Conflict; `data.reason` is `did`, `owner`, `key`, `slug` or `url`
 */
export function sameAgent(index: EntryIndex, coming: Coming, slug: string): AgentEntry | undefined {
  const known = coming.did === undefined ? undefined : index.byDid(coming.did)
  const holder = known ?? index.bySlug(slug)
  if (known === undefined && holder !== undefined && !isSameWithoutDid(holder, coming)) {
    throw slugTaken(slug)
  }
  const neighbour = index.byUrl(coming.url)
  // The supervisor bound the port itself: whoever was there before is gone.
  if (neighbour !== undefined && neighbour.id !== holder?.id && coming.origin === 'registered') {
    throw conflict('url', 'Another agent is registered at this address')
  }
  if (holder !== undefined && coming.origin === 'registered') mayRenew(holder, coming)
  return holder
}

function isSameWithoutDid(holder: AgentEntry, coming: Coming): boolean {
  return holder.did === undefined && coming.did === undefined && holder.url === coming.url
}

/**
 * An entry that nobody has proven makes way for the agent that has proven its key: at the same address, for whoever the
 * entry was about is not there any more (what an operator set aside stays in the way); under its DID at another address,
 * for the entry was never about the agent, and its name, its past and what was decided about it are a stranger's.
 */
export function isReplaceable(holder: AgentEntry, coming: Coming): boolean {
  if (holder.verified || holder.origin === 'supervised' || !coming.verified) return false
  if (holder.did === coming.did) return holder.url !== coming.url && holder.owner !== coming.owner
  return holder.url === coming.url && holder.quarantine === undefined
}

/**
 * What an agent of this house was under a key that was thrown away, or another author: nothing runs under that DID any
 * more. A process that runs keeps the name, and so does an agent of another machine.
 */
export function isFormerIdentity(
  holder: Pick<AgentEntry, 'did' | 'status' | 'host'>,
  coming: Pick<AgentEntry, 'did' | 'host'>,
): boolean {
  const isOurs = holder.host === undefined || holder.host === coming.host
  return isOurs && holder.status !== 'ready' && coming.did !== undefined && holder.did !== coming.did
}

function mayRenew(holder: AgentEntry, coming: Coming): void {
  if (holder.origin === 'supervised')
    throw conflict(
      'did',
      'The agent is one that the gateway runs by itself; once it does not, an operator removes the entry',
    )
  if (holder.owner !== coming.owner && !takesItsPlace(holder, coming))
    throw conflict('owner', 'The agent belongs to another owner')
  if (!holder.verified) return
  const newest = holder.keys?.at(-1)
  const sameKey = newest !== undefined && newest === coming.keys?.at(-1)
  if (!coming.verified && (!sameKey || holder.url !== coming.url))
    throw conflict('did', 'The agent is verified: another key or address needs a proof with its key')
  if (newest !== undefined && !keysEver(coming).includes(newest))
    throw conflict('key', 'The key of the agent has changed without a proof by the one before it')
  const retired = retiredKeys(holder)
  if (coming.keys?.some((key) => retired.has(key)))
    throw conflict('key', 'The document of the agent is an older one: it lists a key that was retired')
}

/**
 * The keys that the newest one goes back to. A document of ours lists every key that there was, each later one signed by
 * the one before it; that was verified. In those of other methods nothing binds one key to another.
 */
function keysEver({ did, keys = [], document }: Coming): string[] {
  if (did?.startsWith('did:parley:') !== true) return keys.slice(-1)
  const history = document?.['keyHistory']
  if (!Array.isArray(history)) return keys
  return [...keys, ...(history as { publicKeyBase58: string }[]).map((key) => key.publicKeyBase58)]
}

/** Whoever has one of these must not get it listed again, with a document from before. */
function retiredKeys({ document }: AgentEntry): Set<unknown> {
  const history = document?.['keyHistory']
  if (!Array.isArray(history)) return new Set()
  const keys = history as { publicKeyBase58: string; retired?: boolean }[]
  return new Set(keys.filter(({ retired }) => retired === true).map((key) => key.publicKeyBase58))
}

/** The agent itself, by its DID, comes before whoever registered it; one with proof before one without. */
function takesItsPlace(holder: AgentEntry, coming: Coming): boolean {
  return coming.verified && (coming.owner === coming.did || !holder.verified)
}

export function slugTaken(slug: string): ParleyError {
  return conflict('slug', `The slug ${slug} belongs to another agent`, { slug })
}

export function hasChanged(): ParleyError {
  return conflict('changed', 'The agent is no longer the one that was looked at: look again')
}

function conflict(reason: string, message: string, more: Record<string, string> = {}): ParleyError {
  return new ParleyError('Conflict', { message, data: { reason, ...more } })
}
