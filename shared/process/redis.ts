import { Redis, type RedisOptions } from 'ioredis'
import type { Log } from './log.ts'

/** Longest wait for a connection at the start, and for the answer to a command. */
const [connectMs, commandMs] = [5000, 5000]
/** Longest wait between two attempts to connect again. */
const retryMaxMs = 1000

export interface RedisConnection {
  url: string
  log: Log
  /** Options of the driver beyond those that every connection of the house has. */
  options?: RedisOptions
}

/**
 * A connection that comes back by itself. A command that is given while there is none fails at once, rather than to wait
 * without a bound; one without an answer fails after 5 s.
 * @throws Error when no Redis answers within 5 s; the text names the address without user and password
 */
export async function connectRedis({ url, log, options }: RedisConnection): Promise<Redis> {
  const all: RedisOptions & { replyMapping: 'legacy' } = {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: connectMs,
    commandTimeout: commandMs,
    retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 10), retryMaxMs),
    ...options,
    replyMapping: 'legacy',
  }
  const redis = new Redis(url, all)
  logOutages(redis, log)
  const ready = Promise.withResolvers<void>()
  redis.once('ready', ready.resolve)
  const timer = setTimeout(() => ready.reject(new Error('timed out')), connectMs)
  // Tried again until the time is over: a machine that starts all at once has Redis a little later.
  redis.connect().catch(() => {})
  try {
    await ready.promise
  } catch {
    redis.disconnect()
    throw new Error(`REDIS_URL: no Redis answers at ${addressOf(url)}.`)
  } finally {
    clearTimeout(timer)
  }
  return redis
}

/** One line when the connection is lost, one when it is back. */
function logOutages(redis: Redis, log: Log): void {
  let down = false
  redis.on('error', (error: Error) => {
    if (!down) log.error({ err: error }, 'connection to Redis lost')
    down = true
  })
  redis.on('ready', () => {
    if (down) log.info('connection to Redis is back')
    down = false
  })
}

function addressOf(url: string): string {
  const { protocol, host } = URL.parse(url) ?? { protocol: 'redis:', host: 'an address that cannot be read' }
  return `${protocol}//${host}`
}
