import { randomUUID } from 'node:crypto'
import { timestamp } from '@parley/wire/model/timestamp'
import type { AgentEntry, NewEntryFields } from './entry.ts'
import type { EntryIndex } from './entry-index.ts'

/** The maximum length of a host name label. */
const slugMaxLength = 63

/**
 * Converts an agent name to `[a-z0-9-]` (spec/gateway-registry.md#slugs). Returns undefined if nothing remains or the
 * result is a UUID, because entries are also found by id.
 */
export function slugOf(name: string): string | undefined {
  const slug = name
    .normalize('NFKD')
    .replace(/\p{Mark}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, slugMaxLength)
    .replace(/^-+|-+$/g, '')
  return slug === '' || isUuid(slug) ? undefined : slug
}

/** Returns whether the text has the form of an entry id. */
export function isUuid(text: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(text)
}

/** Returns the first of `<slug>-2`, `<slug>-3`, … that is not taken. */
export function numberedSlug(slug: string, isTaken: (slug: string) => boolean): string {
  for (let number = 2; ; number++) {
    const numbered = `${slug.slice(0, slugMaxLength - 7)}-${number}`
    if (!isTaken(numbered)) return numbered
  }
}

/** Returns the initial fields of an entry. Its id is the last part of its did:parley if that part is free. */
export function newEntryFields(
  index: EntryIndex,
  agent: Pick<AgentEntry, 'did' | 'keys'>,
  slug: string,
): NewEntryFields {
  const ownId = idOfKey(agent)
  const id = ownId !== undefined && index.byId(ownId) === undefined ? ownId : randomUUID()
  return { id, slug, registeredAt: timestamp(), sendsHeartbeats: false, load: {} }
}

/** Returns the last part of a did:parley, which derives from the first key. Other methods may end in anything. */
function idOfKey({ did, keys }: Pick<AgentEntry, 'did' | 'keys'>): string | undefined {
  const id = did?.startsWith('did:parley:') && keys !== undefined ? did.split(':').at(-1) : undefined
  return id !== undefined && isUuid(id) ? id : undefined
}
