import { Pool } from 'undici'
import { z } from 'zod'
import { readBase58 } from '../did/base58.ts'
import { isAcceptableKey, publicKeyBytes } from '../did/ed25519.ts'
import { RecentMap } from '../did/recent-map.ts'
import { BoundedResponse } from '../net/bounded-response.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import type { ClientMetadataUrl } from './client-metadata-url.ts'
import { unavailable } from './introspection.ts'

/** The keys that the OAuth server knows its clients by. */
export interface ClientKeys {
  /**
   * Undefined when the client is not there, or has no key that may be used. `again`: ask even if the answer is known.
   * @throws ParleyError Unavailable when the provider is down, slow or answers nonsense
   */
  publicKey(clientId: string, again?: boolean): Promise<Uint8Array | undefined>
}

export interface ClientKeysOptions {
  /**
   * Client metadata, as RFC 7592 or Ory Hydra's admin API give it; `{client_id}` is filled in. A function is asked until
   * it says an address (discovery); while it says that there is none, nobody has a key.
   */
  url: ClientMetadataUrl
  /** Our own client there. */
  clientId: string
  clientSecret: string
  /** Default 2 s. */
  timeoutMs?: number
  /** How long an answer is kept. Default 60 s. */
  keptMs?: number
}

/** `public_key` (base58) stands in the metadata itself, or in Hydra's free `metadata`. Null is absent. */
const holder = z.object({ public_key: z.string().nullish() })
const clientMetadata = holder.extend({ client_id: z.string().optional(), metadata: holder.nullish() })

const answerMaxBytes = 64 * 1024
const keptMax = 1000
/** That the provider says no address is believed for so long. */
const noneMs = 60_000

interface Endpoint {
  pool: Pool
  template: string
}

export class HttpClientKeys implements ClientKeys, AsyncDisposable {
  readonly #options: ClientKeysOptions
  readonly #authorization: string
  readonly #kept = new RecentMap<string, { key: Uint8Array; until: number }>(keptMax)
  readonly #underWay = new Map<string, Promise<Uint8Array | undefined>>()
  readonly #breaker = new CircuitBreaker()
  #endpoint: Promise<Endpoint | undefined> | undefined

  constructor(options: ClientKeysOptions) {
    this.#options = options
    const credentials = [options.clientId, options.clientSecret].map(encodeURIComponent).join(':')
    this.#authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
  }

  async publicKey(clientId: string, again = false): Promise<Uint8Array | undefined> {
    const kept = again ? undefined : this.#kept.get(clientId)
    if (kept !== undefined && kept.until > performance.now()) return kept.key
    const shared = this.#underWay.get(clientId)
    if (shared !== undefined) return shared
    const asked = this.#ask(clientId).finally(() => this.#underWay.delete(clientId))
    this.#underWay.set(clientId, asked)
    return asked
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const endpoint = await this.#endpoint?.catch(() => undefined)
    await endpoint?.pool.destroy()
  }

  async #ask(clientId: string): Promise<Uint8Array | undefined> {
    try {
      const key = await this.#read(clientId)
      // That there is none is not kept: who registers a key may use it at once.
      if (key === undefined) this.#kept.delete(clientId)
      else this.#kept.set(clientId, { key, until: performance.now() + (this.#options.keptMs ?? 60_000) })
      return key
    } catch (error) {
      throw unavailable(error)
    }
  }

  async #read(clientId: string): Promise<Uint8Array | undefined> {
    const answered = await this.#breaker.run(async () => {
      const endpoint = await this.#open()
      return endpoint === undefined ? undefined : this.#get(endpoint, clientId)
    })
    if (answered === undefined || answered.status === 404) return undefined
    const { status, text } = answered
    if (status !== 200) throw new Error(`client metadata answered ${status}`)
    return keyIn(clientMetadata.parse(JSON.parse(text)), clientId)
  }

  /** Those who ask while the address is looked for wait for the same answer. */
  #open(): Promise<Endpoint | undefined> {
    this.#endpoint ??= this.#look().catch((error: unknown) => {
      this.#endpoint = undefined
      throw error
    })
    return this.#endpoint
  }

  async #look(): Promise<Endpoint | undefined> {
    const { url, timeoutMs: timeout = 2000 } = this.#options
    const template = typeof url === 'string' ? url : await url()
    if (template !== undefined)
      return { pool: new Pool(new URL(template).origin, { connections: 8, connect: { timeout } }), template }
    setTimeout(() => {
      this.#endpoint = undefined
    }, noneMs).unref()
    return undefined
  }

  async #get({ pool, template }: Endpoint, clientId: string): Promise<{ status: number; text: string }> {
    const { pathname, search } = new URL(template.replaceAll('{client_id}', encodeURIComponent(clientId)))
    const path = pathname + search
    const response = new BoundedResponse({ maxBytes: answerMaxBytes })
    const { timeoutMs = 2000 } = this.#options
    const timer = setTimeout(
      () => response.abort(new DOMException('no answer in time', 'TimeoutError')),
      timeoutMs,
    )
    try {
      const headers = { authorization: this.#authorization, accept: 'application/json' }
      pool.dispatch({ method: 'GET', path, headers }, response)
      const { status, body } = await response.received
      if (status >= 500) throw new Error(`client metadata answered ${status}`)
      return { status, text: body.toString('utf8') }
    } finally {
      clearTimeout(timer)
    }
  }
}

/** @throws Error when the answer is about another client */
function keyIn(found: z.infer<typeof clientMetadata>, clientId: string): Uint8Array | undefined {
  if (found.client_id !== undefined && found.client_id !== clientId)
    throw new Error('client metadata is about another client')
  return readPublicKey(found.metadata?.public_key ?? found.public_key ?? '')
}

/** Undefined unless it is base58 of a key that may be used. */
export function readPublicKey(base58: string): Uint8Array | undefined {
  const key = readBase58(base58, publicKeyBytes)
  return key !== undefined && isAcceptableKey(key) ? key : undefined
}
