import type { Log } from '../process/log.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import type { Store } from '../store/store.ts'

interface SweepParts {
  store: Store
  scheduler: Scheduler
  holder: string
  log: Log
  /** Default 5 s. */
  everyMs?: number
}

/**
 * Where several processes share the tasks of an agent, or their line can be lost: whatever the store says is waiting, or was
 * left behind by a process that died, is in the line, within seconds, again and again.
 */
export function startSweep(parts: SweepParts): Disposable {
  let busy = false
  let failing = false
  const round = async () => {
    if (busy || !parts.scheduler.running) return
    busy = true
    try {
      await sweep(parts)
      failing = false
    } catch (error) {
      if (!failing) parts.log.error({ err: error }, 'waiting tasks could not be looked over')
      failing = true
    }
    busy = false
  }
  const timer = setInterval(() => void round(), parts.everyMs ?? 5000)
  timer.unref()
  void round()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

export async function sweep({ store, scheduler, holder }: SweepParts): Promise<void> {
  const unfinished = await store.listUnfinished(Date.now(), holder)
  await scheduler.restore(unfinished.map(({ id, version, owner }) => ({ taskId: id, version, owner })))
}
