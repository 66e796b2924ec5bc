import { isResting } from '@parley/wire/model/task'
import type { EventBus } from './event-bus.ts'

export interface RestOptions {
  bus: EventBus
  taskId: string
  /** Only events after this sequence number count. */
  afterSequence: number
  /** Reads the store: whether the task has ended, is paused or was removed. */
  isAtRest: () => Promise<boolean>
  /** Each of them ends the wait. */
  signals: readonly AbortSignal[]
  /** How long to wait at most, in milliseconds. */
  maxMs: number
  /** How often the store is read, because the bus may lose a notification. Default 5 s. */
  recheckMs?: number
}

/**
 * Resolves when the task has ended or paused, when a signal aborts, or after `maxMs`. A call subscribes before it returns
 * its promise, so that no event of a task that starts later is missed. Unlike `followTask`, it keeps no events, so that
 * thousands of calls may wait.
 */
export async function untilResting(options: RestOptions): Promise<void> {
  const { bus, taskId, afterSequence, isAtRest, signals, maxMs, recheckMs = 5000 } = options
  const heard = { end: false, change: false }
  let wake = () => {}
  const end = () => {
    heard.end = true
    wake()
  }
  using subscription = bus.subscribe(taskId, (item) => {
    if (item.kind === 'changed') {
      heard.change = true
      wake()
    } else if (item.kind === 'status-update' && item.sequence > afterSequence && isResting(item.status.state))
      end()
  })
  for (const signal of signals) {
    if (signal.aborted) heard.end = true
    signal.addEventListener('abort', end)
  }
  const until = performance.now() + maxMs
  try {
    await subscription.ready
    while (!heard.end) {
      const leftMs = until - performance.now()
      if (leftMs <= 0) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(leftMs, recheckMs))
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
        if (heard.change || heard.end) wake()
      })
      heard.change = false
      if (!heard.end && (await isAtRest())) return
    }
  } finally {
    for (const signal of signals) signal.removeEventListener('abort', end)
  }
}
