import type { JsonObject } from '@parley/wire/model/task'
import type { DIDResolutionResult, DIDResolver } from 'did-resolver'

/** A longer document is none: it is kept in memory. */
const documentMaxChars = 64 * 1024

/** Reads an object behind the private-address guard; rejects when there is none. */
export type ReadExternal = (url: string) => Promise<JsonObject>

/** did:web on our own way out: the resolver of that name fetches by itself, past every guard. */
export function didWebResolver(read: ReadExternal): DIDResolver {
  return async (did, parsed) => {
    const url = didWebUrl(parsed.id)
    if (url === undefined) return failed('invalidDid')
    const document = await read(url).catch(() => undefined)
    if (document === undefined || document['id'] !== did) return failed('notFound')
    if (JSON.stringify(document).length > documentMaxChars) return failed('notFound')
    return {
      didResolutionMetadata: { contentType: 'application/did+json' },
      didDocument: document as unknown as DIDResolutionResult['didDocument'],
      didDocumentMetadata: {},
    }
  }
}

/**
 * The method's mapping: a host, with `%3A` before a port, then the segments of a path. Undefined for what decodes into
 * anything that would lead elsewhere.
 */
export function didWebUrl(id: string): string | undefined {
  const [host = '', ...segments] = id.split(':')
  if (!/^[a-z\d](?:[a-z\d.-]*[a-z\d])?(?:%3A\d{1,5})?$/i.test(host)) return undefined
  if (!segments.every((segment) => /^[\w.-]+$/.test(segment) && !/^\.+$/.test(segment))) return undefined
  const path = segments.length === 0 ? '.well-known' : segments.join('/')
  return `https://${host.replace(/%3a/i, ':')}/${path}/did.json`
}

function failed(error: string): DIDResolutionResult {
  return { didResolutionMetadata: { error }, didDocument: null, didDocumentMetadata: {} }
}
