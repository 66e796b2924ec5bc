import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '@parley/kit/process/log'
import { timestampOf } from '@parley/wire/model/timestamp'
import type { Store } from './store.ts'

const dayMs = 24 * 60 * 60 * 1000

/** Interval between runs of the retention. */
export const retentionEveryMs = 60 * 60 * 1000

interface RetentionOptions {
  store: Store
  /** How long ended tasks are kept after their last change (RETENTION_DAYS); 0 keeps them forever. */
  days: number
  log: Pick<Log, 'info' | 'warn'>
  /** Interval between runs. Default one hour; the first run starts immediately. */
  everyMs?: number
  /** Number of tasks to remove in one batch, and the pause between batches. Default 100 and 50 ms. */
  batch?: number
  pauseMs?: number
}

/**
 * Removes ended tasks that are older than `days`, together with all their data, in small batches that do not delay
 * other requests. Expired idempotency keys are always removed.
 */
export function startRetention(options: RetentionOptions): Disposable {
  const stopping = new AbortController()
  let running = false
  const start = async () => {
    if (running) return
    running = true
    try {
      const removed = await removeOldTasks(options, stopping.signal)
      if (removed > 0) options.log.info({ tasks: removed }, 'old tasks were removed')
    } catch (error) {
      if (!stopping.signal.aborted) options.log.warn({ err: error }, 'old tasks could not be removed')
    } finally {
      running = false
    }
  }
  const timer = setInterval(() => void start(), options.everyMs ?? retentionEveryMs)
  timer.unref()
  void start()
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer)
      stopping.abort()
    },
  }
}

/**
 * Runs the retention of a store once and returns the number of removed tasks.
 * @throws AbortError after an abort; the next run continues
 */
export async function removeOldTasks(
  options: Pick<RetentionOptions, 'store' | 'days' | 'batch' | 'pauseMs'>,
  signal: AbortSignal,
): Promise<number> {
  const { store, days, batch = 100, pauseMs = 50 } = options
  // An empty timestamp sorts before that of every task.
  const before = days === 0 ? '' : timestampOf((Date.now() - days * dayMs) * 1000)
  let [total, removed] = [0, batch]
  while (removed === batch && !signal.aborted) {
    removed = await store.removeEnded(before, batch)
    total += removed
    await pause(pauseMs, undefined, { signal, ref: false })
  }
  return total
}
