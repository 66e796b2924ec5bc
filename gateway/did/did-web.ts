import type { JsonObject } from '@parley/wire/model/task'

/** Documents are cached in memory, so a longer one is treated as not found. */
const documentMaxChars = 64 * 1024

/** Reads a JSON object from a URL through the private-address guard. Rejects if the URL does not serve one. */
export type ReadExternal = (url: string) => Promise<JsonObject>

/** Reads the document of a did:web. The published resolvers for this method would bypass the guard. */
export async function readDidWeb(
  did: string,
  url: string,
  read: ReadExternal,
): Promise<JsonObject | undefined> {
  const document = await read(url).catch(() => undefined)
  if (document === undefined || document['id'] !== did) return undefined
  return JSON.stringify(document).length > documentMaxChars ? undefined : document
}

/**
 * Returns the URL of a did:web's document. The id is a host, with `%3A` before an optional port, followed by path
 * segments. Returns undefined if a part decodes to characters that would change the target.
 */
export function didWebUrl(id: string): string | undefined {
  const [host = '', ...segments] = id.split(':')
  if (!/^[a-z\d](?:[a-z\d.-]*[a-z\d])?(?:%3A\d{1,5})?$/i.test(host)) return undefined
  if (!segments.every((segment) => /^[\w.-]+$/.test(segment) && !/^\.+$/.test(segment))) return undefined
  const path = segments.length === 0 ? '.well-known' : segments.join('/')
  return `https://${host.replace(/%3a/i, ':')}/${path}/did.json`
}
