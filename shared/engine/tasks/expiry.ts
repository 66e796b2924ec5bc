import type { Log } from '@parley/kit/process/log'
import { ParleyError } from '@parley/wire/errors'
import { failed } from './agent-message.ts'
import type { TaskEngine } from './engine.ts'

/** A pause lasts at most this long (spec/tasks.md#pauses-and-deadlines). */
export const pauseMaxMs = 7 * 24 * 60 * 60 * 1000
/** How often paused tasks are looked at, and how many at a time. */
const everyMs = 30_000
const batch = 100

/** Ends pauses that have lasted too long. */
export function startExpiry(engine: TaskEngine, log: Log, lookEveryMs = everyMs): Disposable {
  let over = false
  const timer = setInterval(() => {
    expirePauses(engine, Date.now()).catch((error: unknown) => {
      if (!over) log.error({ err: error }, 'pauses could not be ended')
    })
  }, lookEveryMs)
  timer.unref()
  return {
    [Symbol.dispose]: () => {
      over = true
      clearInterval(timer)
    },
  }
}

export async function expirePauses(engine: TaskEngine, now: number): Promise<void> {
  for (const id of await engine.store.listDue(now, batch)) {
    const record = await engine.store.loadTask(id)
    if (record?.dueAt === undefined || record.dueAt > now) continue
    try {
      await engine.change(record, (task) => {
        // The caller answered in the meantime.
        if (task.dueAt === undefined || task.dueAt > now) throw new ParleyError('UnsupportedOperation')
        return failed(task, 'Nobody answered within 7 days.')
      })
    } catch (error) {
      if (!(error instanceof ParleyError)) throw error
    }
  }
}
