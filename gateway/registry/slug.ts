import type { AgentEntry } from './entry.ts'

/** As long as a label of a host name. */
const longest = 63

/**
 * The name of the agent in `[a-z0-9-]` (spec/gateway-registry.md#slugs). Undefined when nothing of the name is left,
 * and for a UUID: an entry is found by its id too.
 */
export function slugOf(name: string): string | undefined {
  const slug = name
    .normalize('NFKD')
    .replace(/\p{Mark}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, longest)
    .replace(/^-+|-+$/g, '')
  return slug === '' || isUuid(slug) ? undefined : slug
}

/** The form of an id. */
export function isUuid(text: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(text)
}

/**
 * The id of an entry. The end of a DID of ours is made of its first key, which its document has shown; of another method it
 * is any text.
 */
export function idOfKey({ did, keys }: Pick<AgentEntry, 'did' | 'keys'>): string | undefined {
  const id = did?.startsWith('did:parley:') && keys !== undefined ? did.split(':').at(-1) : undefined
  return id !== undefined && isUuid(id) ? id : undefined
}
