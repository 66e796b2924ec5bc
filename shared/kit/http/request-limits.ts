import { hash } from 'node:crypto'
import { isIP } from 'node:net'
import rateLimit, { normalizeIP, type RateLimitPluginOptions } from '@fastify/rate-limit'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Introspection, Introspector } from '../auth/introspection.ts'
import { RecentMap } from '../did/recent-map.ts'
import type { Audit } from '../process/audit.ts'
import type { Log } from '../process/log.ts'

export interface RequestLimitOptions {
  /** Maximum number of requests per minute from one caller or one address. */
  perMinute: number
  /**
   * Maximum number of callers, addresses and tokens to track; the least recently used are dropped. Default 10,000.
   */
  keysMax?: number
  /** Store for the counts, as @fastify/rate-limit options. Default: the memory of this process. */
  store?: Pick<RateLimitPluginOptions, 'store' | 'redis' | 'nameSpace'>
  /** Whether the request in progress is part of a request that was counted. Default: no request is. */
  isCounted?: () => boolean
  /** Returns the credentials of a request without `Authorization`, such as the cookie of a session. Default: none. */
  sessionOf?: ((request: Pick<FastifyRequest, 'headers'>) => string | undefined) | undefined
}

type CountRequest = ReturnType<FastifyInstance['createRateLimit']>
type Counter = (counted: Counted) => ReturnType<CountRequest>

const windowMs = 60_000

/** Never limited: monitoring continues to work under load, and a page of the console loads many small files. */
const exempt = /^\/((health|metrics)(\?|$)|console\/(assets|vendor)\/)/

/** Paths to which a server sends a request for each request from its callers, or a gateway for operators. */
const checkerPath =
  /^\/(operator\/|oauth2\/(introspect(\?|$)|introspection-leases(\?|$)|clients\/)|registry\/agents\/[^/]+\/signatures\/)/

/** Used in place of a client for the credentials of a server that checks tokens, which is exempt at `checkerPath`. */
const uncounted = ''

export interface LimitsOptions {
  /** RATE_LIMIT_PER_MINUTE; 0 means no limit. */
  perMinute: number
  /** REDIS_URL; if undefined, each process counts its own requests. */
  redisUrl: string | undefined
  /** Processes with the same name share their counts: the id of an agent, or `gateway`. */
  name: string
  log: Log
  /** See `RequestLimitOptions`. */
  isCounted?: () => boolean
  sessionOf?: RequestLimitOptions['sessionOf']
}

/**
 * Opens a server's request limits. With a Redis URL, all processes with the same name share their counts, and
 * requests are rejected while Redis is unavailable. Returns undefined if `perMinute` is 0.
 * @throws Error if Redis cannot be reached
 */
export async function openLimits(
  { perMinute, redisUrl, name, log, ...more }: LimitsOptions,
  stack: AsyncDisposableStack,
): Promise<RequestLimits | undefined> {
  if (perMinute === 0 || redisUrl === undefined) return requestLimits({ perMinute, ...more })
  const { connectRedis } = await import('../process/redis.ts')
  const redis = stack.adopt(await connectRedis({ url: redisUrl, log }), (open) => open.disconnect())
  return requestLimits({ perMinute, store: { redis, nameSpace: `parley:{${name}}:limit:` }, ...more })
}

/** Returns undefined if `perMinute` is 0, because nothing is counted then. */
export function requestLimits(options: RequestLimitOptions): RequestLimits | undefined {
  return options.perMinute === 0 ? undefined : new RequestLimits(options)
}

/**
 * Limits requests per minute. A request with a token that was previously valid counts for that token's client,
 * regardless of the address. Every other request counts for its address before the token is introspected. Invalid
 * tokens are thus limited by address, and clients with valid tokens at the same address are not affected. Tokens are
 * stored as hashes and in this process only. Once over the limit, a client is rejected until the minute ends, without
 * another access to the store.
 */
export class RequestLimits {
  readonly #options: RequestLimitOptions
  /** Client by hash of the token. */
  readonly #clientOfToken: RecentMap<string, LimitedClient>
  /** End of the block by key, in milliseconds since 1970. */
  readonly #blockedUntil: RecentMap<string, number>
  /** The limits that operators have set for individual clients, by key. */
  readonly #perMinuteOf: RecentMap<string, number>
  #counter: Counter | undefined
  #audit: Audit | undefined

  constructor(options: RequestLimitOptions) {
    const keysMax = options.keysMax ?? 10_000
    this.#options = { ...options, keysMax }
    this.#clientOfToken = new RecentMap(keysMax)
    this.#blockedUntil = new RecentMap(keysMax)
    this.#perMinuteOf = new RecentMap(keysMax)
  }

  /** Starts counting the server's requests as soon as it is ready. */
  attach(app: FastifyInstance, audit: Audit): void {
    this.#audit = audit
    const { perMinute, keysMax, store } = this.#options
    void app.register(rateLimit, { ...store, global: false, skipOnError: false })
    app.after(() => {
      const options = {
        // An operator may have set a lower limit for this client.
        max: (_request: unknown, key: string) => Math.min(perMinute, this.#perMinuteOf.get(key) ?? perMinute),
        timeWindow: windowMs,
        keyGenerator: ({ key = '' }: Counted) => key,
        cache: keysMax,
      }
      this.#counter = app.createRateLimit(options) as unknown as Counter
      app.addHook('onRequest', (request) => this.#countArrival(request))
    })
  }

  /** Wraps an introspector to remember the client of each valid token and to reject callers over the limit. */
  watch(introspector: Introspector): Introspector {
    return {
      introspect: async (token) => {
        const result = await introspector.introspect(token)
        const client = result.client_id ?? result.sub
        if (isValid(result) && client !== undefined)
          await this.#countValidated(token, { client, perMinute: result.requests_per_minute })
        else this.#clientOfToken.delete(printOf(token))
        return result
      },
    }
  }

  /**
   * Counts further requests with the credentials of a session for its client, as those with a token of the client. Without a
   * client, the session has ended, and they are counted for their address.
   */
  recognize(session: string, { client_id, requests_per_minute }: Partial<Introspection>): void {
    if (client_id === undefined) this.#clientOfToken.delete(printOf(session))
    else this.#clientOfToken.set(printOf(session), { client: client_id, perMinute: requests_per_minute })
  }

  /**
   * Sets whether these credentials (the part of `Authorization` after the scheme) belong to a server that checks
   * tokens. Such a server is limited at all endpoints except those for introspection and clients.
   */
  trust(credentials: string, checks: boolean): void {
    const print = printOf(credentials)
    if (checks) this.#clientOfToken.set(print, { client: uncounted })
    else if (this.#clientOfToken.get(print)?.client === uncounted) this.#clientOfToken.delete(print)
  }

  /**
   * Counts further requests that one HTTP request contains, for the client of its valid token.
   * @throws ParleyError TooManyRequests, Unavailable
   */
  async countFurther({ headers }: Pick<FastifyRequest, 'headers'>, requests: number): Promise<void> {
    const credentials = credentialsOf(headers.authorization)
    const client = credentials === undefined ? undefined : this.#clientOfToken.get(printOf(credentials))
    if (client === undefined || client.client === uncounted) return
    for (let counted = 0; counted < requests; counted += 1) await this.#countClient(client)
  }

  async #countArrival(request: FastifyRequest): Promise<void> {
    if (exempt.test(request.url) || this.#options.isCounted?.() === true) return
    const { sessionOf } = this.#options
    const credentials = credentialsOf(request.headers.authorization) ?? sessionOf?.(request)
    const client = credentials === undefined ? undefined : this.#clientOfToken.get(printOf(credentials))
    if (client?.client === uncounted && checkerPath.test(request.url)) return
    if (client !== undefined && client.client !== uncounted) await this.#countClient(client)
    else await this.#count({ key: `address:${addressOf(request)}`, address: request.ip })
  }

  /** Counts the request for the client, unless it was counted on arrival because the token was known. */
  async #countValidated(token: string, client: LimitedClient): Promise<void> {
    const print = printOf(token)
    const known = this.#clientOfToken.get(print)
    this.#clientOfToken.set(print, client)
    if (known?.client !== client.client) await this.#countClient(client)
  }

  async #countClient({ client, perMinute }: LimitedClient): Promise<void> {
    const key = keyOf(client)
    if (perMinute === undefined) this.#perMinuteOf.delete(key)
    else this.#perMinuteOf.set(key, perMinute)
    await this.#count({ key, client })
  }

  /** @throws ParleyError TooManyRequests, Unavailable */
  async #count({ key, ...caller }: { key: string; client?: string; address?: string }): Promise<void> {
    const until = this.#blockedUntil.get(key)
    if (until !== undefined) {
      const remainingMs = until - Date.now()
      if (remainingMs > 0) throw tooMany(remainingMs, caller)
      this.#blockedUntil.delete(key)
    }
    const count = await this.#counter?.({ key, routeOptions: {} }).catch(storeUnavailable)
    if (count === undefined || count.isAllowed || !count.isExceeded) return
    this.#blockedUntil.set(key, Date.now() + count.ttl)
    // Logged once per block, because a line for each rejected request would flood the log.
    this.#audit?.record({
      who: caller.client,
      address: caller.address,
      action: 'request',
      allowed: false,
      reason: 'TooManyRequests',
    })
    throw tooMany(count.ttl, caller)
  }
}

interface LimitedClient {
  client: string
  /** The limit that an operator has set for the client (`requests_per_minute` of the introspection response). */
  perMinute?: number | undefined
}

/** The subject of a count. It has the only fields of a request that @fastify/rate-limit reads. */
interface Counted {
  key?: string
  routeOptions: object
}

function isValid({ active, exp }: Introspection): boolean {
  return active && (exp === undefined || exp * 1000 > Date.now())
}

function credentialsOf(authorization: string | undefined): string | undefined {
  const credentials = authorization?.slice(authorization.indexOf(' ') + 1).trim()
  return credentials === '' ? undefined : credentials
}

function printOf(credentials: string): string {
  return hash('sha256', credentials, 'base64url')
}

/** Hashes client ids, because they may be long and store keys must be short. */
function keyOf(client: string): string {
  return client.length <= 128 ? `client:${client}` : `client:#${printOf(client)}`
}

/**
 * Returns the address that a request counts for. An IPv6 address counts as its /64 network, which one subscriber
 * usually has. If a trusted proxy forwards something that is not an address, the request counts for the proxy.
 */
export function addressOf(request: FastifyRequest): string {
  return networkOf(isIP(request.ip) === 0 ? (request.socket.remoteAddress ?? '') : request.ip)
}

/** Returns an IPv4 address, or the /64 network of an IPv6 address. */
export function networkOf(address: string): string {
  return normalizeIP(address)
}

function tooMany(waitMs: number, { client }: { client?: string }): ParleyError {
  return new ParleyError('TooManyRequests', {
    data: { reason: client === undefined ? 'address' : 'caller' },
    headers: { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1000))) },
  })
}

function storeUnavailable(cause: unknown): never {
  throw new ParleyError('Unavailable', {
    data: { reason: 'limits' },
    headers: { 'retry-after': '2' },
    cause,
  })
}
