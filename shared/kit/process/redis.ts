import { Redis, type RedisOptions } from 'ioredis'
import type { Log } from './log.ts'
import { ConfigError } from './settings.ts'

/** Longest wait for a connection at the start, and for the answer to a command. */
const [connectMs, commandMs] = [5000, 5000]
/** Longest wait between two attempts to connect again. */
const retryMaxMs = 1000
/**
 * A connection may be dead without a word (a route that is gone, a machine without power): it is asked so often, and is
 * replaced when it is silent for so long although something was asked.
 */
const [askEveryMs, silentMaxMs] = [3000, 6000]
/** What Redis says of a user or password that it does not know. */
const refused = /^(WRONGPASS|NOAUTH|NOPERM|ERR (invalid password|AUTH |Client sent AUTH))/

export interface RedisConnection {
  url: string
  log: Log
  /** Options of the driver beyond those that every connection of the house has. */
  options?: RedisOptions
}

/**
 * A connection that comes back by itself. A command that is given while there is none fails at once, rather than to wait
 * without a bound; one without an answer fails after 5 s.
 * @throws ConfigError when no Redis answers within 5 s, or it refuses the user; the text names the address alone
 */
export async function connectRedis({ url, log, options }: RedisConnection): Promise<Redis> {
  const all: RedisOptions & { replyMapping: 'legacy' } = {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: connectMs,
    commandTimeout: commandMs,
    socketTimeout: silentMaxMs,
    // Behind this address is a replica now: its master is looked for anew.
    reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 1 : false),
    retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 10), retryMaxMs),
    ...options,
    replyMapping: 'legacy',
  }
  const redis = new Redis(url, all)
  logOutages(redis, log)
  const ready = Promise.withResolvers<void>()
  redis.once('ready', ready.resolve)
  const refusal = (error: Error) => {
    if (refused.test(error.message)) ready.reject(error)
  }
  redis.on('error', refusal)
  const timer = setTimeout(() => ready.reject(new Error('timed out')), connectMs)
  // Tried again until the time is over: a machine that starts all at once has Redis a little later.
  redis.connect().catch(() => {})
  try {
    await ready.promise
  } catch (error) {
    redis.disconnect()
    const isRefused = refused.test((error as Error).message)
    const said = isRefused
      ? `the Redis at ${addressOf(url)} refuses this user or password`
      : `no Redis answers at ${addressOf(url)}`
    throw new ConfigError([`REDIS_URL: ${said}.`])
  } finally {
    clearTimeout(timer)
    redis.off('error', refusal)
  }
  askNowAndThen(redis)
  return redis
}

/** A connection on which nothing is asked would not notice that it is dead: that of a subscriber, and any at night. */
function askNowAndThen(redis: Redis): void {
  const timer = setInterval(() => {
    if (redis.status === 'ready') redis.ping().catch(() => {})
  }, askEveryMs).unref()
  redis.once('end', () => clearInterval(timer))
}

/** Of the connections that tell the same log, those that are lost. */
const lost = new WeakMap<Log, Set<Redis>>()

/** One line when the first of them is lost, one when the last is back: a process has several to the same Redis. */
function logOutages(redis: Redis, log: Log): void {
  const down = lost.get(log) ?? new Set()
  lost.set(log, down)
  redis.on('error', (error: Error) => {
    if (down.size === 0) log.error({ err: error }, 'connection to Redis lost')
    down.add(redis)
  })
  redis.on('ready', () => {
    if (down.delete(redis) && down.size === 0) log.info('connection to Redis is back')
  })
  redis.on('end', () => down.delete(redis))
}

function addressOf(url: string): string {
  const { protocol, host } = URL.parse(url) ?? { protocol: 'redis:', host: 'an address that cannot be read' }
  return `${protocol}//${host}`
}
