import { RecentMap } from '@parley/kit/did/recent-map'
import { ParleyError } from '@parley/wire/errors'
import type { JsonObject } from '@parley/wire/model/task'
import { type DIDResolver, parse, Resolver } from 'did-resolver'
import { didWebResolver, type ReadExternal } from './did-web.ts'

export interface DidDocumentsOptions {
  /** Documents of our own: the gateway's, those of the registered agents. */
  own: (did: string) => JsonObject | undefined
  outside: ReadExternal
  /** How long a document from outside is kept. Default 60 s. */
  keptMs?: number
  /** Default 10 s. */
  missingKeptMs?: number
  /** Default 200. */
  keptMax?: number
  /** Look-ups outside at the same time. Default 64. */
  underWayMax?: number
}

const didMaxChars = 512

/** Documents by DID: our own, and those of did:key and did:web, kept for a short time and asked for once at a time. */
export class DidDocuments {
  readonly #options: DidDocumentsOptions
  readonly #resolver: Resolver
  readonly #kept: RecentMap<string, { document: JsonObject | undefined; until: number }>
  readonly #underWay = new Map<string, Promise<JsonObject | undefined>>()

  constructor(options: DidDocumentsOptions) {
    this.#options = options
    this.#kept = new RecentMap(options.keptMax ?? 200)
    this.#resolver = new Resolver({ key: didKeyResolver, web: didWebResolver(options.outside) })
  }

  /**
   * Undefined: nobody we know, or a method that we do not.
   * @throws ParleyError InvalidParams for what is no DID, Unavailable when too many are being looked up
   */
  async resolve(did: string): Promise<JsonObject | undefined> {
    if (did.length > didMaxChars) throw malformed(`must have at most ${didMaxChars} characters`)
    const parsed = parse(did)
    if (parsed === null || parsed.did !== did) throw malformed('is not a DID')
    const own = this.#options.own(did)
    if (own !== undefined) return own
    const kept = this.#kept.get(did)
    if (kept !== undefined && kept.until > performance.now()) return kept.document
    return this.#shared(did)
  }

  #shared(did: string): Promise<JsonObject | undefined> {
    const shared = this.#underWay.get(did)
    if (shared !== undefined) return shared
    // A did:key says its document itself: slow servers of others do not hold it up.
    if (did.startsWith('did:web:') && this.#underWay.size >= (this.#options.underWayMax ?? 64)) throw busy()
    const asked = this.#ask(did).finally(() => this.#underWay.delete(did))
    this.#underWay.set(did, asked)
    return asked
  }

  async #ask(did: string): Promise<JsonObject | undefined> {
    const { didDocument, didResolutionMetadata } = await this.#resolver.resolve(did)
    if (didResolutionMetadata.error === 'invalidDid') throw malformed('is not a DID of its method')
    const document = (didDocument ?? undefined) as JsonObject | undefined
    const { keptMs = 60_000, missingKeptMs = 10_000 } = this.#options
    const keptFor = document === undefined ? missingKeptMs : keptMs
    this.#kept.set(did, { document, until: performance.now() + keptFor })
    return document
  }
}

/** Loaded when it is first needed: most gateways never see such a DID. */
const didKeyResolver: DIDResolver = async (...asked) => {
  const { getResolver } = await import('key-did-resolver')
  const { key } = getResolver() as unknown as { key: DIDResolver }
  return key(...asked)
}

function malformed(message: string): ParleyError {
  return new ParleyError('InvalidParams', { data: { issues: [{ path: 'did', message }] } })
}

function busy(): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'Too many DIDs are being looked up',
    data: { reason: 'busy' },
    headers: { 'retry-after': '2' },
  })
}
