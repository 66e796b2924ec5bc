import type { AgentEntry } from './entry.ts'

/** Maximum length of a host name label. */
const slugMaxLength = 63

/**
 * Converts an agent name to `[a-z0-9-]` (spec/gateway-registry.md#slugs). Undefined if nothing remains, or for a UUID,
 * because entries are also found by id.
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

/** Whether the text has the form of an entry id. */
export function isUuid(text: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(text)
}

/**
 * The entry id of a did:parley, whose last part derives from the first key and is verified. Undefined for other
 * methods, where it is arbitrary.
 */
export function idOfKey({ did, keys }: Pick<AgentEntry, 'did' | 'keys'>): string | undefined {
  const id = did?.startsWith('did:parley:') && keys !== undefined ? did.split(':').at(-1) : undefined
  return id !== undefined && isUuid(id) ? id : undefined
}
