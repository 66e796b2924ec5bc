import { ParleyError } from '@parley/wire/errors'
import { z } from 'zod'
import { BoundedResponse } from '../net/bounded-response.ts'
import { errorCode } from '../net/error-code.ts'
import { Pool } from '../net/http-client.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import { type LeaseState, leaseHeader, leaseStateSchema } from './lease-protocol.ts'

/**
 * Owner ids are compared in the database, where all lone surrogates become the same character, so they are rejected.
 */
const name = z
  .string()
  .max(512)
  .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text))

/** The party that acts for the subject of a token, and the party that acted before it (RFC 8693, section 4.1). */
export interface Actor {
  sub: string
  act?: Actor | undefined
}
const actor: z.ZodType<Actor> = z.object({
  sub: name,
  get act() {
    return actor.optional()
  },
})

/** Returns the actors, the current one first, as nested claims. Undefined if there are none. */
export function nestedActors(actors: readonly string[]): Actor | undefined {
  return actors.reduceRight<Actor | undefined>(
    (inner, sub) => ({ sub, ...(inner && { act: inner }) }),
    undefined,
  )
}

/** All actors, the current one first. */
export function actorsOf(act: Actor): string[] {
  const actors: string[] = []
  for (let actor: Actor | undefined = act; actor !== undefined; actor = actor.act) actors.push(actor.sub)
  return actors
}

/** The fields of an introspection response (RFC 7662, section 2.2) that are used here. */
export const introspectionClaims = z.object({
  active: z.boolean(),
  client_id: name.optional(),
  sub: name.optional(),
  scope: z.string().max(4096).optional(),
  exp: z.number().optional(),
  aud: z.union([z.string(), z.array(z.string())]).optional(),
  act: actor.optional(),
  token_type: z.string().max(64).optional(),
  /** The limit that an operator has set for the client. Sent by the embedded OAuth server. */
  requests_per_minute: z.number().positive().optional(),
  /** The key that the caller must prove to hold, as its thumbprint (RFC 9449, section 6.2). */
  cnf: z.looseObject({ jkt: z.string().max(64).optional() }).optional(),
  /** Set by Ory Hydra, which also reports refresh tokens as active. */
  token_use: z.string().max(64).optional(),
  /** Set by an embedded server that grants leases. */
  parley_lease: leaseStateSchema.optional().catch(undefined),
})
/** Some providers send null or an empty string for absent fields. */
const introspectionResponse = z.preprocess((body) => {
  if (typeof body !== 'object' || body === null) return body
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null && value !== ''))
}, introspectionClaims)
export type Introspection = Omit<z.infer<typeof introspectionClaims>, 'token_use' | 'parley_lease'> & {
  /**
   * The addresses that name gateways in `act`, for a token of an OAuth server that does not refuse clients with an address
   * as their id. Set by this process and never read from a response. If absent, each http(s) address names a gateway,
   * which is correct for the embedded OAuth server.
   */
  gateways?: readonly string[]
}

/** Validates tokens with an OAuth 2.0 server. */
export interface Introspector {
  /** @throws ParleyError Unavailable if the provider is down, slow or sends an invalid response. */
  introspect(token: string): Promise<Introspection>
}

export interface IntrospectionOptions {
  /** The introspection endpoint, or a function that performs discovery and is called until it succeeds. */
  url: string | (() => Promise<string>)
  clientId: string
  clientSecret: string
  /** Default 2 s. */
  timeoutMs?: number
}

/** An introspection response with what a holder of a lease needs to cache it. */
export interface IntrospectionResponse {
  answer: Introspection
  /** Undefined if the OAuth server grants no leases. */
  lease: LeaseState | undefined
  /** Size of the response. */
  bytes: number
}

const responseMaxBytes = 64 * 1024
/** A timer that fires later than this was delayed by a blocked event loop. */
const blockedMs = 100

/**
 * Introspects tokens over HTTP (RFC 7662). Results are not cached, but concurrent introspections of one token share a
 * request. A circuit breaker suspends requests while the provider is unreachable; callers are then rejected.
 */
export class HttpIntrospector implements Introspector, AsyncDisposable {
  readonly #options: IntrospectionOptions
  readonly #pending = new Map<string, Promise<Introspection>>()
  readonly #authorization: string
  readonly #breaker = new CircuitBreaker()
  #endpoint: { pool: Pool; address: URL } | undefined
  #discovery: Promise<string> | undefined

  constructor(options: IntrospectionOptions) {
    this.#options = options
    const credentials = [options.clientId, options.clientSecret].map(encodeURIComponent).join(':')
    this.#authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
  }

  introspect(token: string): Promise<Introspection> {
    const shared = this.#pending.get(token)
    if (shared !== undefined) return shared
    const introspecting = this.request(token)
      .then(({ answer }) => answer)
      .finally(() => this.#pending.delete(token))
    this.#pending.set(token, introspecting)
    return introspecting
  }

  /**
   * Introspects the token with a request that is not shared.
   * @throws ParleyError Unavailable if the provider is down, slow or sends an invalid response.
   */
  async request(token: string): Promise<IntrospectionResponse> {
    try {
      const { status, text } = await this.#breaker.run(() => this.#introspectWithRetry(token))
      if (status !== 200) throw new Error(`the introspection endpoint returned ${status}`)
      const parsed = introspectionResponse.parse(JSON.parse(text))
      const { token_use: use = 'access_token', parley_lease: lease, ...answer } = parsed
      // A refresh token is valid only at its OAuth server.
      return { answer: use === 'access_token' ? answer : { active: false }, lease, bytes: text.length }
    } catch (error) {
      throw unavailable(error)
    }
  }

  /**
   * Sends a request to the OAuth server.
   * @param request.path relative to the introspection endpoint; by default the endpoint itself
   * @param request.timeoutMs covers waiting for a connection, the first byte and the body
   */
  async post(request: {
    path?: string
    headers: Record<string, string>
    body: string
    timeoutMs: number
    signal?: AbortSignal
  }): Promise<{ status: number; text: string }> {
    const { headers, body, signal } = request
    const response = new BoundedResponse({ maxBytes: responseMaxBytes })
    const abort = () => response.abort(new DOMException('no response in time', 'TimeoutError'))
    const cancelTimeout = responseTimeout(request.timeoutMs, abort)
    const cancel = () => response.abort(new DOMException('the request was cancelled', 'AbortError'))
    signal?.addEventListener('abort', cancel)
    try {
      if (signal?.aborted === true) cancel()
      const { pool, address } = await this.#open()
      const path = request.path === undefined ? address : new URL(request.path, address)
      pool.dispatch(
        {
          method: 'POST',
          path: path.pathname + path.search,
          headers: { authorization: this.#authorization, accept: 'application/json', ...headers },
          body,
        },
        response,
      )
      const received = await response.received
      return { status: received.status, text: received.body.toString('utf8') }
    } finally {
      signal?.removeEventListener('abort', cancel)
      cancelTimeout()
    }
  }

  /** Rejects if the provider does not respond. */
  async ping(): Promise<void> {
    await this.introspect('ping')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#endpoint?.pool.destroy()
  }

  async #introspectWithRetry(token: string): Promise<{ status: number; text: string }> {
    const response = await this.#introspect(token).catch((error: unknown) => {
      // The provider closed a kept-alive connection during the request. Introspection is idempotent, so retry once.
      if (errorCode(error) !== 'UND_ERR_SOCKET') throw error
      return this.#introspect(token)
    })
    if (response.status >= 500) throw new Error(`the introspection endpoint returned ${response.status}`)
    return response
  }

  #introspect(token: string): Promise<{ status: number; text: string }> {
    return this.post({
      headers: { 'content-type': 'application/x-www-form-urlencoded', [leaseHeader]: '1' },
      body: `token=${encodeURIComponent(token)}&token_type_hint=access_token`,
      timeoutMs: this.#options.timeoutMs ?? 2000,
    })
  }

  async #open(): Promise<{ pool: Pool; address: URL }> {
    if (this.#endpoint !== undefined) return this.#endpoint
    const address = new URL(await this.#address())
    const timeoutMs = this.#options.timeoutMs ?? 2000
    this.#endpoint ??= {
      pool: new Pool(address.origin, {
        connections: 32,
        connect: { timeout: timeoutMs },
        keepAliveTimeout: 30_000,
      }),
      address,
    }
    return this.#endpoint
  }

  /** Concurrent callers share one discovery. */
  #address(): Promise<string> | string {
    const { url } = this.#options
    if (typeof url === 'string') return url
    this.#discovery ??= url().finally(() => {
      this.#discovery = undefined
    })
    return this.#discovery
  }
}

/** Without the provider no caller can be authenticated, so requests are rejected. */
export function unavailable(cause: unknown): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'The OAuth server is unavailable',
    data: { reason: 'oauth' },
    headers: { 'retry-after': '2' },
    cause,
  })
}

/**
 * Calls `expired` after the limit. If the event loop was blocked during that time, an unread response may have
 * arrived, or the request may not have been sent, so the limit starts again once.
 * @returns a function that cancels the timeout
 */
export function responseTimeout(limitMs: number, expired: () => void): () => void {
  const due = performance.now() + limitMs
  // Data that has already arrived is read first.
  const expire = () => void setImmediate(expired)
  let timer = setTimeout(() => {
    if (performance.now() - due > blockedMs) timer = setTimeout(expire, limitMs)
    else expire()
  }, limitMs)
  return () => clearTimeout(timer)
}
