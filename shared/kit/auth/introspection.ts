import { ParleyError } from '@parley/wire/errors'
import { Pool } from 'undici'
import { z } from 'zod'
import { BoundedResponse } from '../net/bounded-response.ts'
import { answerLimit } from './answer-limit.ts'
import { CircuitBreaker } from './circuit-breaker.ts'

/** Whose things are whose stands on it: halves of surrogate pairs all become the same in a database's text. */
const name = z
  .string()
  .max(512)
  .refine((text) => text.isWellFormed())

/** RFC 7662, section 2.2: what we read of an introspection answer. */
const introspection = z.object({
  active: z.boolean(),
  client_id: name.optional(),
  sub: name.optional(),
  scope: z.string().max(4096).optional(),
  exp: z.number().optional(),
  aud: z.union([z.string(), z.array(z.string())]).optional(),
  /** Ory Hydra's: it calls a refresh token active too. */
  token_use: z.string().max(64).optional(),
})
/** Providers write what they do not know as null or as an empty text. */
const answer = z.preprocess((given) => {
  if (typeof given !== 'object' || given === null) return given
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null && value !== ''))
}, introspection)
export type Introspection = Omit<z.infer<typeof introspection>, 'token_use'>

/** Asks an OAuth 2.0 server about a token. */
export interface Introspector {
  /** @throws ParleyError Unavailable when the provider is down, slow or answers nonsense. */
  introspect(token: string): Promise<Introspection>
}

export interface IntrospectionOptions {
  /** The endpoint; a function is asked until it answers once (discovery). */
  url: string | (() => Promise<string>)
  clientId: string
  clientSecret: string
  /** Default 2 s. */
  timeoutMs?: number
}

const answerMaxBytes = 64 * 1024

/**
 * RFC 7662 over HTTP. Nothing is cached in time; requests that arrive while an introspection of the same token is under
 * way share its answer. Requests to a provider that cannot be reached are suspended by a circuit breaker; no request is let through
 * meanwhile.
 */
export class HttpIntrospector implements Introspector, AsyncDisposable {
  readonly #options: IntrospectionOptions
  readonly #underWay = new Map<string, Promise<Introspection>>()
  readonly #authorization: string
  readonly #breaker = new CircuitBreaker()
  #endpoint: { pool: Pool; path: string } | undefined
  #discovery: Promise<string> | undefined

  constructor(options: IntrospectionOptions) {
    this.#options = options
    const credentials = [options.clientId, options.clientSecret].map(encodeURIComponent).join(':')
    this.#authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
  }

  introspect(token: string): Promise<Introspection> {
    const shared = this.#underWay.get(token)
    if (shared !== undefined) return shared
    const asked = this.#ask(token).finally(() => this.#underWay.delete(token))
    this.#underWay.set(token, asked)
    return asked
  }

  /** Rejects when the provider does not answer. */
  async ping(): Promise<void> {
    await this.introspect('ping')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#endpoint?.pool.destroy()
  }

  async #ask(token: string): Promise<Introspection> {
    try {
      const { status, text } = await this.#breaker.run(() => this.#reach(token))
      if (status !== 200) throw new Error(`introspection answered ${status}`)
      const { token_use: use = 'access_token', ...said } = answer.parse(JSON.parse(text))
      // Who is handed a refresh token is its OAuth server alone.
      return use === 'access_token' ? said : { active: false }
    } catch (error) {
      throw unavailable(error)
    }
  }

  async #reach(token: string): Promise<{ status: number; text: string }> {
    const answered = await this.#post(token).catch((error: unknown) => {
      // A kept connection that the provider closed as we wrote to it: asking changes nothing there, so ask again.
      if ((error as { code?: unknown }).code !== 'UND_ERR_SOCKET') throw error
      return this.#post(token)
    })
    if (answered.status >= 500) throw new Error(`introspection answered ${answered.status}`)
    return answered
  }

  async #post(token: string): Promise<{ status: number; text: string }> {
    const response = new BoundedResponse({ maxBytes: answerMaxBytes })
    // One limit for the whole: a free connection, the first byte, and a body that arrives slowly.
    const late = () => response.abort(new DOMException('no answer in time', 'TimeoutError'))
    const callOff = answerLimit(this.#options.timeoutMs ?? 2000, late)
    try {
      const { pool, path } = await this.#open()
      const request = {
        method: 'POST',
        path,
        headers: {
          authorization: this.#authorization,
          'content-type': 'application/x-www-form-urlencoded',
          accept: 'application/json',
        },
        body: `token=${encodeURIComponent(token)}&token_type_hint=access_token`,
      } as const
      pool.dispatch(request, response)
      const { status, body } = await response.received
      return { status, text: body.toString('utf8') }
    } finally {
      callOff()
    }
  }

  async #open(): Promise<{ pool: Pool; path: string }> {
    if (this.#endpoint !== undefined) return this.#endpoint
    const address = new URL(await this.#address())
    const timeoutMs = this.#options.timeoutMs ?? 2000
    this.#endpoint ??= {
      pool: new Pool(address.origin, {
        connections: 32,
        connect: { timeout: timeoutMs },
        keepAliveTimeout: 30_000,
      }),
      path: address.pathname + address.search,
    }
    return this.#endpoint
  }

  /** Those who ask while it is looked for wait for the same answer. */
  #address(): Promise<string> | string {
    const { url } = this.#options
    if (typeof url === 'string') return url
    this.#discovery ??= url().finally(() => {
      this.#discovery = undefined
    })
    return this.#discovery
  }
}

/** Never let through: without the provider nobody is known. */
export function unavailable(cause: unknown): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'The OAuth server does not answer',
    data: { reason: 'oauth' },
    headers: { 'retry-after': '2' },
    cause,
  })
}
