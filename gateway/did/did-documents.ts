import { RecentMap } from '@parley/kit/did/recent-map'
import { ParleyError } from '@parley/wire/errors'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import { parse, Resolver } from 'did-resolver'
import { didWebUrl, type ReadExternal, readDidWeb } from './did-web.ts'

export interface DidDocumentsOptions {
  /** Returns the document of the gateway or a registered agent. */
  own: (did: string) => JsonObject | undefined
  readExternal: ReadExternal
  /** How long an external document is cached. Defaults to 60 s. */
  keptMs?: number
  /** How long the absence of a document is cached. Defaults to 10 s. */
  missingKeptMs?: number
  /** Maximum number of cached documents. Defaults to 200. */
  keptMax?: number
  /** Maximum number of concurrent external look-ups. Defaults to 64. */
  concurrentMax?: number
}

const didMaxChars = 512

/** Resolves the gateway's own DIDs, did:key and did:web. Caches external documents and shares concurrent look-ups. */
export class DidDocuments {
  readonly #options: DidDocumentsOptions
  readonly #cache: RecentMap<string, { document: JsonObject | undefined; until: number }>
  readonly #inProgress = new Map<string, Promise<JsonObject | undefined>>()

  constructor(options: DidDocumentsOptions) {
    this.#options = options
    this.#cache = new RecentMap(options.keptMax ?? 200)
  }

  /**
   * Resolves with undefined if the DID is unknown or its method is not supported.
   * @param own returns a registered document. By default, all registered documents are found.
   * @throws ParleyError InvalidParams if the DID is malformed, Unavailable if too many look-ups are in progress
   */
  async resolve(did: string, own = this.#options.own): Promise<JsonObject | undefined> {
    if (did.length > didMaxChars) throw malformedError(`must have at most ${didMaxChars} characters`)
    const parsed = parse(did)
    if (parsed === null || parsed.did !== did) throw malformedError('is not a DID')
    const registered = own(did)
    if (registered !== undefined) return registered
    const cached = this.#cache.get(did)
    if (cached !== undefined && cached.until > performance.now()) return cached.document
    return this.#lookUpOnce(did)
  }

  #lookUpOnce(did: string): Promise<JsonObject | undefined> {
    const shared = this.#inProgress.get(did)
    if (shared !== undefined) return shared
    // The document of a did:key derives from the DID itself, so slow servers do not affect it.
    if (did.startsWith('did:web:') && this.#inProgress.size >= (this.#options.concurrentMax ?? 64))
      throw busyError()
    const lookUp = this.#lookUp(did).finally(() => this.#inProgress.delete(did))
    this.#inProgress.set(did, lookUp)
    return lookUp
  }

  async #lookUp(did: string): Promise<JsonObject | undefined> {
    const document = await this.#read(did)
    const { keptMs = 60_000, missingKeptMs = 10_000 } = this.#options
    const keptFor = document === undefined ? missingKeptMs : keptMs
    this.#cache.set(did, { document, until: performance.now() + keptFor })
    return document
  }

  async #read(did: string): Promise<JsonObject | undefined> {
    if (did.startsWith('did:key:')) return readDidKey(did)
    if (!did.startsWith('did:web:')) return undefined
    const url = didWebUrl(did.slice('did:web:'.length))
    if (url === undefined) throw malformedError('is not valid for its DID method')
    return readDidWeb(did, url, this.#options.readExternal)
  }
}

/** Reads a did:key. The resolver is loaded on first use, because most gateways never encounter a did:key. */
async function readDidKey(did: string): Promise<JsonObject | undefined> {
  const { getResolver } = await import('key-did-resolver')
  const { didDocument, didResolutionMetadata } = await new Resolver(getResolver()).resolve(did)
  if (didResolutionMetadata.error === 'invalidDid') throw malformedError('is not valid for its DID method')
  return jsonObjectOf(JSON.stringify(didDocument))
}

function malformedError(message: string): ParleyError {
  return new ParleyError('InvalidParams', { data: { issues: [{ path: 'did', message }] } })
}

function busyError(): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'Too many DIDs are being looked up',
    data: { reason: 'busy' },
    headers: { 'retry-after': '2' },
  })
}
