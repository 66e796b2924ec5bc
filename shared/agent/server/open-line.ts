import type { EventBus } from '@parley/engine/events/event-bus'
import { InProcessEventBus } from '@parley/engine/events/in-process'
import { InProcessScheduler } from '@parley/engine/queue/in-process'
import type { Scheduler } from '@parley/engine/queue/scheduler'
import type { Log } from '@parley/kit/process/log'

export interface LineOptions {
  /** REDIS_URL; undefined: this process is the only one of its agent. */
  redisUrl: string | undefined
  agentId: string
  /** Tasks that this process runs at a time. */
  concurrency: number
  log: Log
}

export interface Line {
  scheduler: Scheduler
  bus: EventBus
  /** As `/health` names it. */
  backend: 'in-process' | 'bullmq'
}

/**
 * Where tasks wait and how their followers hear: in this process, or on Redis for every process of the agent. What Redis
 * needs is loaded only where it is used.
 * @throws Error when no Redis answers
 */
export async function openLine(options: LineOptions, stack: AsyncDisposableStack): Promise<Line> {
  const { redisUrl: url, agentId, concurrency, log } = options
  if (url === undefined) {
    const bus = stack.use(new InProcessEventBus())
    return { bus, scheduler: stack.use(new InProcessScheduler(concurrency)), backend: 'in-process' }
  }
  const { openRedisEventBus } = await import('@parley/engine/events/redis')
  const { openBullmqScheduler } = await import('@parley/engine/queue/bullmq')
  const bus = stack.use(await openRedisEventBus({ url, agentId, log }))
  const scheduler = stack.use(await openBullmqScheduler({ url, agentId, concurrency, log }))
  return { bus, scheduler, backend: 'bullmq' }
}
