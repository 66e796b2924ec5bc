import { hash } from 'node:crypto'
import { isIP } from 'node:net'
import rateLimit, {
  type CreateRateLimitOptions,
  normalizeIP,
  type RateLimitPluginOptions,
} from '@fastify/rate-limit'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Introspection, Introspector } from '../auth/introspection.ts'
import { RecentMap } from '../did/recent-map.ts'
import type { Audit } from '../process/audit.ts'
import type { Log } from '../process/log.ts'

export interface RequestLimitOptions {
  /** Requests that one caller, or one address, may make in a minute. */
  perMinute: number
  /** Callers, addresses and tokens that are kept in mind, each; of more, those of long ago are forgotten. Default 10,000. */
  keysMax?: number
  /** Where the counts are kept, as @fastify/rate-limit wants it. Default: in this process. */
  store?: Pick<RateLimitPluginOptions, 'store' | 'redis' | 'nameSpace'>
}

type Counter = ReturnType<FastifyInstance['createRateLimit']>

const windowMs = 60_000

/** Answered whoever asks how often: those who watch the server must not be the ones who find it shut. */
const exempt = /^\/(health|metrics)(\?|$)/

/** What servers ask with each request of their own callers. */
const checkerPath = /^\/(oauth2\/(introspect(\?|$)|clients\/)|registry\/agents\/[^/]+\/signatures\/)/

/** Nobody: not counted at `checkerPath`. */
const uncounted = ''

export interface LimitsOptions {
  /** RATE_LIMIT_PER_MINUTE; 0: no limit. */
  perMinute: number
  /** REDIS_URL; undefined: each process counts its own requests. */
  redisUrl: string | undefined
  /** Processes with the same name share their counts: the id of an agent, or `gateway`. */
  name: string
  log: Log
}

/**
 * The request limits of a server. With a Redis URL, all processes of the same name share their counts, and requests are
 * refused while Redis does not answer. Undefined where `perMinute` is 0.
 * @throws Error when Redis does not answer
 */
export async function openLimits(
  { perMinute, redisUrl, name, log }: LimitsOptions,
  stack: AsyncDisposableStack,
): Promise<RequestLimits | undefined> {
  if (perMinute === 0 || redisUrl === undefined) return requestLimits({ perMinute })
  const { connectRedis } = await import('../process/redis.ts')
  const redis = stack.adopt(await connectRedis({ url: redisUrl, log }), (open) => open.disconnect())
  return requestLimits({ perMinute, store: { redis, nameSpace: `parley:{${name}}:limit:` } })
}

/** Undefined where `perMinute` is 0: without a limit nothing is counted, and nothing costs anything. */
export function requestLimits(options: RequestLimitOptions): RequestLimits | undefined {
  return options.perMinute === 0 ? undefined : new RequestLimits(options)
}

/**
 * How many requests are answered in a minute. A request whose token was found good before counts for the client of that
 * token, wherever it comes from; every other one counts for its address, before the OAuth server is asked. So bad tokens
 * end at their address's limit, and neighbours behind one address with good tokens do not notice. Tokens are kept as
 * hashes, and in this process alone; who is over the limit is refused without asking anybody until the minute is over.
 */
export class RequestLimits {
  readonly #options: RequestLimitOptions
  /** Hash of the token → client. */
  readonly #known: RecentMap<string, string>
  /** Key → when it may come again, in milliseconds since 1970. */
  readonly #shut: RecentMap<string, number>
  #counter: Counter | undefined
  #audit: Audit | undefined

  constructor(options: RequestLimitOptions) {
    const keysMax = options.keysMax ?? 10_000
    this.#options = { ...options, keysMax }
    this.#known = new RecentMap(keysMax)
    this.#shut = new RecentMap(keysMax)
  }

  /** Counts the requests of the server from the time that it is ready. */
  attach(app: FastifyInstance, audit: Audit): void {
    this.#audit = audit
    const { perMinute, keysMax, store } = this.#options
    void app.register(rateLimit, { ...store, global: false, skipOnError: false })
    app.after(() => {
      this.#counter = app.createRateLimit({
        max: perMinute,
        timeWindow: windowMs,
        // What is counted is handed over as if it were a request: see `#count`.
        keyGenerator: (counted) => (counted as unknown as Counted).key,
        cache: keysMax,
      } as CreateRateLimitOptions)
      app.addHook('onRequest', (request) => this.#arrives(request))
    })
  }

  /** The introspector, but what it says of a token is noted, and a caller over the limit is refused. */
  watch(introspector: Introspector): Introspector {
    return {
      introspect: async (token) => {
        const found = await introspector.introspect(token)
        const client = found.client_id ?? found.sub
        if (isGood(found) && client !== undefined) await this.#accepted(token, client)
        else this.#known.delete(printOf(token))
        return found
      },
    }
  }

  /**
   * Whether these credentials (what follows the scheme in `Authorization`) are of a server that checks tokens: until it is
   * said otherwise it may ask the OAuth server about tokens and clients as often as it likes. Elsewhere it counts.
   */
  trust(credentials: string, checks: boolean): void {
    const print = printOf(credentials)
    if (checks) this.#known.set(print, uncounted)
    else if (this.#known.get(print) === uncounted) this.#known.delete(print)
  }

  async #arrives(request: FastifyRequest): Promise<void> {
    if (exempt.test(request.url)) return
    const credentials = credentialsOf(request.headers.authorization)
    const client = credentials === undefined ? undefined : this.#known.get(printOf(credentials))
    if (client === uncounted && checkerPath.test(request.url)) return
    if (client !== undefined && client !== uncounted) await this.#count({ key: keyOf(client), client })
    else await this.#count({ key: `address:${addressOf(request)}`, address: request.ip })
  }

  /** A token that is known was counted for its client when it arrived. */
  async #accepted(token: string, client: string): Promise<void> {
    const print = printOf(token)
    if (this.#known.get(print) === client) return
    this.#known.set(print, client)
    await this.#count({ key: keyOf(client), client })
  }

  /** @throws ParleyError TooManyRequests, Unavailable */
  async #count({ key, ...who }: Omit<Counted, 'routeOptions'>): Promise<void> {
    const until = this.#shut.get(key)
    if (until !== undefined) {
      const leftMs = until - Date.now()
      if (leftMs > 0) throw tooMany(leftMs, who)
      this.#shut.delete(key)
    }
    const counted: Counted = { key, routeOptions: {} }
    const found = await (this.#counter as Counter)(counted as unknown as FastifyRequest).catch(storeIsDown)
    if (found.isAllowed || !found.isExceeded) return
    this.#shut.set(key, Date.now() + found.ttl)
    // Once for each time that somebody is shut out: a line per refused request would be a flood of its own.
    this.#audit?.decided({
      who: who.client,
      address: who.address,
      action: 'request',
      allowed: false,
      reason: 'TooManyRequests',
    })
    throw tooMany(found.ttl, who)
  }
}

/** All that @fastify/rate-limit looks at of a request. */
interface Counted {
  key: string
  routeOptions: object
  client?: string
  address?: string
}

function isGood({ active, exp }: Introspection): boolean {
  return active && (exp === undefined || exp * 1000 > Date.now())
}

function credentialsOf(authorization: string | undefined): string | undefined {
  const credentials = authorization?.slice(authorization.indexOf(' ') + 1).trim()
  return credentials === '' ? undefined : credentials
}

function printOf(credentials: string): string {
  return hash('sha256', credentials, 'base64url')
}

/** Client ids may be long; what stands in a store is not. */
function keyOf(client: string): string {
  return client.length <= 128 ? `client:${client}` : `client:#${printOf(client)}`
}

/**
 * IPv6 by its /64, which is what one subscriber has. What is no address (a trusted proxy may pass anything on) counts for
 * the proxy that sent it.
 */
export function addressOf(request: FastifyRequest): string {
  const address = isIP(request.ip) === 0 ? (request.socket.remoteAddress ?? '') : request.ip
  return normalizeIP(address)
}

function tooMany(waitMs: number, { client }: { client?: string }): ParleyError {
  return new ParleyError('TooManyRequests', {
    data: { reason: client === undefined ? 'address' : 'caller' },
    headers: { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1000))) },
  })
}

function storeIsDown(cause: unknown): never {
  throw new ParleyError('Unavailable', {
    data: { reason: 'limits' },
    headers: { 'retry-after': '2' },
    cause,
  })
}
