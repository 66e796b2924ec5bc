import type { Log } from '@parley/kit/process/log'
import { ParleyError } from '@parley/wire/errors'
import { failed } from './agent-message.ts'
import type { TaskEngine } from './engine.ts'

/** Maximum duration of a pause (spec/tasks.md#pauses-and-deadlines). */
export const pauseMaxMs = 7 * 24 * 60 * 60 * 1000
/** Maximum duration of the pause before the first payment. The task has done no work by then. */
export const unpaidMaxMs = 60 * 60 * 1000
/** The interval at which expired pauses are processed, and the number processed at a time. */
const defaultIntervalMs = 30_000
const batch = 100

/** Periodically fails tasks whose pause has expired. */
export function startExpiry(engine: TaskEngine, log: Log, intervalMs = defaultIntervalMs): Disposable {
  let stopped = false
  const timer = setInterval(() => {
    expirePauses(engine, Date.now()).catch((error: unknown) => {
      if (!stopped) log.error({ err: error }, 'could not expire pauses')
    })
  }, intervalMs)
  timer.unref()
  return {
    [Symbol.dispose]: () => {
      stopped = true
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
        const isCallers = task.deadlineAt !== undefined && task.deadlineAt <= now
        const days = task.unpaid === true ? 'within an hour' : 'within 7 days'
        const limit = isCallers ? 'before the deadline that its caller set' : days
        return failed(task, `The task was not ${task.unpaid === true ? 'paid' : 'answered'} ${limit}.`)
      })
    } catch (error) {
      if (!(error instanceof ParleyError)) throw error
    }
  }
}
