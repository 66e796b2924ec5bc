import { z } from 'zod'
import { readBase58 } from '../did/base58.ts'
import { isAcceptableKey, publicKeyBytes } from '../did/ed25519.ts'
import { RecentMap } from '../did/recent-map.ts'
import { BoundedResponse } from '../net/bounded-response.ts'
import { Pool } from '../net/http-client.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import type { ClientMetadataUrl } from './client-metadata-url.ts'
import { unavailable } from './introspection.ts'

/** Reads the public keys that clients have registered with the OAuth server. */
export interface ClientKeys {
  /**
   * Returns undefined if the client does not exist or has no acceptable key.
   * @param fresh bypass the cache
   * @throws ParleyError Unavailable if the provider is down, slow or sends an invalid response
   */
  publicKey(clientId: string, fresh?: boolean): Promise<Uint8Array | undefined>
}

export interface ClientKeysOptions {
  /**
   * URL template of the client metadata (RFC 7592, or Ory Hydra's admin API) with `{client_id}`. A function performs
   * discovery and is called until it returns a template; until then, no client has a key.
   */
  url: ClientMetadataUrl
  /** This server's client id at the OAuth server. */
  clientId: string
  clientSecret: string
  /** Default 2 s. */
  timeoutMs?: number
  /** How long a key is cached. Default 60 s. */
  cacheMs?: number
}

/** `public_key` (base58) is a field of the metadata or of Hydra's free-form `metadata`. Null counts as absent. */
const keyHolder = z.object({ public_key: z.string().nullish() })
const clientMetadata = keyHolder.extend({ client_id: z.string().optional(), metadata: keyHolder.nullish() })

const responseMaxBytes = 64 * 1024
const cacheMax = 1000
/** How long the absence of a template is cached. */
const noTemplateMs = 60_000

interface Endpoint {
  pool: Pool
  template: string
}

export class HttpClientKeys implements ClientKeys, AsyncDisposable {
  readonly #options: ClientKeysOptions
  readonly #authorization: string
  readonly #cache = new RecentMap<string, { key: Uint8Array; until: number }>(cacheMax)
  readonly #pending = new Map<string, Promise<Uint8Array | undefined>>()
  readonly #breaker = new CircuitBreaker()
  #endpoint: Promise<Endpoint | undefined> | undefined

  constructor(options: ClientKeysOptions) {
    this.#options = options
    const credentials = [options.clientId, options.clientSecret].map(encodeURIComponent).join(':')
    this.#authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
  }

  async publicKey(clientId: string, fresh = false): Promise<Uint8Array | undefined> {
    const cached = fresh ? undefined : this.#cache.get(clientId)
    if (cached !== undefined && cached.until > performance.now()) return cached.key
    const shared = this.#pending.get(clientId)
    if (shared !== undefined) return shared
    const lookup = this.#lookUp(clientId).finally(() => this.#pending.delete(clientId))
    this.#pending.set(clientId, lookup)
    return lookup
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const endpoint = await this.#endpoint?.catch(() => undefined)
    await endpoint?.pool.destroy()
  }

  async #lookUp(clientId: string): Promise<Uint8Array | undefined> {
    try {
      const key = await this.#read(clientId)
      // A missing key is not cached, so that a client can use a key as soon as it is registered.
      if (key === undefined) this.#cache.delete(clientId)
      else this.#cache.set(clientId, { key, until: performance.now() + (this.#options.cacheMs ?? 60_000) })
      return key
    } catch (error) {
      throw unavailable(error)
    }
  }

  async #read(clientId: string): Promise<Uint8Array | undefined> {
    const response = await this.#breaker.run(async () => {
      const endpoint = await this.#open()
      return endpoint === undefined ? undefined : this.#get(endpoint, clientId)
    })
    if (response === undefined || response.status === 404) return undefined
    const { status, text } = response
    if (status !== 200) throw new Error(`the client metadata endpoint returned ${status}`)
    return keyIn(clientMetadata.parse(JSON.parse(text)), clientId)
  }

  /** Concurrent callers share one discovery. */
  #open(): Promise<Endpoint | undefined> {
    this.#endpoint ??= this.#discover().catch((error: unknown) => {
      this.#endpoint = undefined
      throw error
    })
    return this.#endpoint
  }

  async #discover(): Promise<Endpoint | undefined> {
    const { url, timeoutMs: timeout = 2000 } = this.#options
    const template = typeof url === 'string' ? url : await url()
    if (template !== undefined)
      return { pool: new Pool(new URL(template).origin, { connections: 8, connect: { timeout } }), template }
    setTimeout(() => {
      this.#endpoint = undefined
    }, noTemplateMs).unref()
    return undefined
  }

  async #get({ pool, template }: Endpoint, clientId: string): Promise<{ status: number; text: string }> {
    const { pathname, search } = new URL(template.replaceAll('{client_id}', encodeURIComponent(clientId)))
    const path = pathname + search
    const response = new BoundedResponse({ maxBytes: responseMaxBytes })
    const { timeoutMs = 2000 } = this.#options
    const timer = setTimeout(
      () => response.abort(new DOMException('no response in time', 'TimeoutError')),
      timeoutMs,
    )
    try {
      const headers = { authorization: this.#authorization, accept: 'application/json' }
      pool.dispatch({ method: 'GET', path, headers }, response)
      const { status, body } = await response.received
      if (status >= 500) throw new Error(`the client metadata endpoint returned ${status}`)
      return { status, text: body.toString('utf8') }
    } finally {
      clearTimeout(timer)
    }
  }
}

/** @throws Error if the metadata is about another client */
function keyIn(metadata: z.infer<typeof clientMetadata>, clientId: string): Uint8Array | undefined {
  if (metadata.client_id !== undefined && metadata.client_id !== clientId)
    throw new Error('client metadata is about another client')
  return readPublicKey(metadata.metadata?.public_key ?? metadata.public_key ?? '')
}

/** Decodes a base58 public key. Returns undefined if it is malformed or not acceptable. */
export function readPublicKey(base58: string): Uint8Array | undefined {
  const key = readBase58(base58, publicKeyBytes)
  return key !== undefined && isAcceptableKey(key) ? key : undefined
}
