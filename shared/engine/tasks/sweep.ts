import type { Log } from '@parley/kit/process/log'
import type { Scheduler } from '../queue/scheduler.ts'
import type { Store, Unfinishedness } from '../store/store.ts'

interface SweepParts {
  store: Store
  scheduler: Scheduler
  runner: { readonly holder: string; isHeldBack(taskId: string): boolean }
  log: Log
  /** How often a process tries to claim the sweep. Default 0.5 s. */
  intervalMs?: number
}

/** How often processes compete for the sweep, and how long the winner keeps it. */
export const sweepTimes = { intervalMs: 500, turnMs: 1000 }
/**
 * All waiting tasks are swept at this interval, because the queue may have lost them. If ten times the
 * duration of a sweep is longer, that is the interval.
 */
const [fullSweepIntervalMs, restFactor] = [5000, 10]

/**
 * Starts the sweep for agents with several processes or with a queue that can lose jobs. Within seconds, it
 * enqueues all tasks again that are waiting according to the store or whose process has died.
 */
export function startSweep(parts: SweepParts): Disposable {
  const { scheduler, log, intervalMs = sweepTimes.intervalMs } = parts
  let [sweeping, failing, stopped] = [false, false, false]
  let fullSweepDueAt = 0
  const sweepIfElected = async () => {
    if (!(await scheduler.claimSweep(sweepTimes.turnMs))) return
    const startedAt = performance.now()
    if (startedAt < fullSweepDueAt) return sweep(parts, 'left')
    await sweep(parts)
    const endedAt = performance.now()
    fullSweepDueAt = endedAt + Math.max(fullSweepIntervalMs, restFactor * (endedAt - startedAt))
  }
  const round = async () => {
    if (sweeping || !scheduler.running) return
    sweeping = true
    try {
      await sweepIfElected()
      failing = false
    } catch (error) {
      if (!failing && !stopped) log.error({ err: error }, 'could not sweep waiting tasks')
      failing = true
    }
    sweeping = false
  }
  const timer = setInterval(() => void round(), intervalMs)
  timer.unref()
  void round()
  return {
    [Symbol.dispose]: () => {
      stopped = true
      clearInterval(timer)
    },
  }
}

export async function sweep(
  { store, scheduler, runner }: SweepParts,
  which: Unfinishedness = 'all',
): Promise<void> {
  const unfinished = await store.listUnfinished(Date.now(), runner.holder, which)
  // `recover` starts the suspects of a crash one by one.
  const due = unfinished.filter(({ id }) => !runner.isHeldBack(id))
  await scheduler.restore(due.map(({ id, version, owner }) => ({ taskId: id, version, owner })))
}
