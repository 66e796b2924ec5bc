import type { Log } from '../process/log.ts'
import { type RequestLimits, requestLimits } from './request-limits.ts'

export interface LimitsOptions {
  /** RATE_LIMIT_PER_MINUTE; 0: nothing is limited. */
  perMinute: number
  /** REDIS_URL; undefined: each process counts by itself. */
  redisUrl: string | undefined
  /** Whose requests are counted together: the id of an agent, or `gateway`. */
  name: string
  log: Log
}

/**
 * The limits of a server, counted on Redis for all processes that share a name where there is one. Without an answer of
 * Redis requests are refused.
 * @throws Error when no Redis answers
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
