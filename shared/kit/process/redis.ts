import { Redis, type RedisOptions } from 'ioredis'
import type { Log } from './log.ts'
import { ConfigError } from './settings.ts'

/** Timeouts for connecting at startup and for a command. */
const [connectMs, commandMs] = [5000, 5000]
/** Maximum delay between two attempts to reconnect. */
const retryMaxMs = 1000
/**
 * A connection may be half-open (for example, after a lost route or a power failure). It is pinged at the first
 * interval, and replaced if commands receive no reply for the second.
 */
const [pingIntervalMs, silenceMaxMs] = [3000, 6000]
/** Redis replies to a wrong user or password. */
const authFailure = /^(WRONGPASS|NOAUTH|NOPERM|ERR (invalid password|AUTH |Client sent AUTH))/

export interface RedisConnection {
  url: string
  log: Log
  /** Additional driver options. */
  options?: RedisOptions
}

/**
 * Opens a connection that reconnects automatically. While it is down, commands fail immediately instead of being
 * queued; a command without a reply fails after 5 s.
 * @throws ConfigError if Redis does not reply within 5 s or rejects the user; the message contains only the address
 */
export async function connectRedis({ url, log, options }: RedisConnection): Promise<Redis> {
  const all: RedisOptions & { replyMapping: 'legacy' } = {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: connectMs,
    commandTimeout: commandMs,
    socketTimeout: silenceMaxMs,
    // The server has become a replica, so reconnect to reach the new master.
    reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 1 : false),
    retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 10), retryMaxMs),
    ...options,
    replyMapping: 'legacy',
  }
  const redis = new Redis(url, all)
  logOutages(redis, log)
  const ready = Promise.withResolvers<void>()
  redis.once('ready', ready.resolve)
  const rejectAuthFailure = (error: Error) => {
    if (authFailure.test(error.message)) ready.reject(error)
  }
  redis.on('error', rejectAuthFailure)
  const timer = setTimeout(() => ready.reject(new Error('timed out')), connectMs)
  // Retry until the timeout, because Redis may start at the same time and become ready later.
  redis.connect().catch(() => {})
  try {
    await ready.promise
  } catch (error) {
    redis.disconnect()
    const isRejected = error instanceof Error && authFailure.test(error.message)
    const fault = isRejected
      ? `Redis at ${addressOf(url)} rejects this user or password`
      : `no reply from Redis at ${addressOf(url)}`
    throw new ConfigError([`REDIS_URL: ${fault}.`])
  } finally {
    clearTimeout(timer)
    redis.off('error', rejectAuthFailure)
  }
  pingPeriodically(redis)
  return redis
}

/** Without traffic, a half-open connection is not detected, as with subscribers and idle connections. */
function pingPeriodically(redis: Redis): void {
  const timer = setInterval(() => {
    if (redis.status === 'ready') redis.ping().catch(() => {})
  }, pingIntervalMs).unref()
  redis.once('end', () => clearInterval(timer))
}

/** Lost connections of each logger. */
const lostConnections = new WeakMap<Log, Set<Redis>>()

/** Logs when the first of the process's Redis connections is lost and when the last one is restored. */
function logOutages(redis: Redis, log: Log): void {
  const down = lostConnections.get(log) ?? new Set()
  lostConnections.set(log, down)
  redis.on('error', (error: Error) => {
    if (down.size === 0) log.error({ err: error }, 'connection to Redis lost')
    down.add(redis)
  })
  redis.on('ready', () => {
    if (down.delete(redis) && down.size === 0) log.info('connection to Redis restored')
  })
  redis.on('end', () => down.delete(redis))
}

function addressOf(url: string): string {
  const { protocol, host } = URL.parse(url) ?? { protocol: 'redis:', host: 'an invalid address' }
  return `${protocol}//${host}`
}
