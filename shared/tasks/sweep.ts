import type { Log } from '../process/log.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import type { Store } from '../store/store.ts'

interface SweepParts {
  store: Store
  scheduler: Scheduler
  holder: string
  log: Log
  /** How often it is asked whose turn it is. Default 1 s. */
  everyMs?: number
}

/** One of the processes looks within this time; less often where a look takes long. */
const turnMs = 1500
const timesAsLong = 10

/**
 * Where several processes share the tasks of an agent, or their line can be lost: whatever the store says is waiting, or was
 * left behind by a process that died, is in the line, within seconds, again and again.
 */
export function startSweep(parts: SweepParts): Disposable {
  let busy = false
  let failing = false
  let took = 0
  const round = async () => {
    if (busy || !parts.scheduler.running) return
    busy = true
    try {
      if (await parts.scheduler.claimTurn(Math.max(turnMs, timesAsLong * took))) {
        const began = performance.now()
        await sweep(parts)
        took = performance.now() - began
      }
      failing = false
    } catch (error) {
      if (!failing) parts.log.error({ err: error }, 'waiting tasks could not be looked over')
      failing = true
    }
    busy = false
  }
  const timer = setInterval(() => void round(), parts.everyMs ?? 1000)
  timer.unref()
  void round()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

export async function sweep({ store, scheduler, holder }: SweepParts): Promise<void> {
  const unfinished = await store.listUnfinished(Date.now(), holder)
  await scheduler.restore(unfinished.map(({ id, version, owner }) => ({ taskId: id, version, owner })))
}
