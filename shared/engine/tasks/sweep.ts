import type { Log } from '@parley/kit/process/log'
import type { Scheduler } from '../queue/scheduler.ts'
import type { Store, Unfinishedness } from '../store/store.ts'

interface SweepParts {
  store: Store
  scheduler: Scheduler
  runner: { readonly holder: string; isHeldBack(taskId: string): boolean }
  log: Log
  /** How often it is asked whose turn it is. Default 0.5 s. */
  everyMs?: number
}

/** In each turn, which one of the processes has, it is looked for what a dead process left behind. */
export const sweepTimes = { everyMs: 500, turnMs: 1000 }
/** What waits is looked over so often, or less where that takes long: the line alone may have lost it. */
const [allEveryMs, timesAsLong] = [5000, 10]

/**
 * Where several processes share the tasks of an agent, or their line can be lost: whatever the store says is waiting, or was
 * left behind by a process that died, is in the line, within seconds, again and again.
 */
export function startSweep(parts: SweepParts): Disposable {
  const { scheduler, log, everyMs = sweepTimes.everyMs } = parts
  let [busy, failing, over] = [false, false, false]
  let allDueAt = 0
  const look = async () => {
    if (!(await scheduler.claimTurn(sweepTimes.turnMs))) return
    const began = performance.now()
    if (began < allDueAt) return sweep(parts, 'left')
    await sweep(parts)
    const ended = performance.now()
    allDueAt = ended + Math.max(allEveryMs, timesAsLong * (ended - began))
  }
  const round = async () => {
    if (busy || !scheduler.running) return
    busy = true
    try {
      await look()
      failing = false
    } catch (error) {
      if (!failing && !over) log.error({ err: error }, 'waiting tasks could not be looked over')
      failing = true
    }
    busy = false
  }
  const timer = setInterval(() => void round(), everyMs)
  timer.unref()
  void round()
  return {
    [Symbol.dispose]: () => {
      over = true
      clearInterval(timer)
    },
  }
}

export async function sweep(
  { store, scheduler, runner }: SweepParts,
  which: Unfinishedness = 'all',
): Promise<void> {
  const unfinished = await store.listUnfinished(Date.now(), runner.holder, which)
  // Tasks that an earlier process left behind run one after the other (`recover`), not all at once.
  const due = unfinished.filter(({ id }) => !runner.isHeldBack(id))
  await scheduler.restore(due.map(({ id, version, owner }) => ({ taskId: id, version, owner })))
}
