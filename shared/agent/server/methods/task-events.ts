import { eventsBetween } from '@parley/engine/tasks/task-events'
import { roughBytesOf } from '@parley/wire/codecs/lazy-part'
import type { TaskEvent } from '@parley/wire/model/event'
import type { Run } from './method.ts'
import { requireDelegatedOutline } from './tasks.ts'

/** A page ends once its events reach this size, because events contain whole artifacts. */
const pageMaxChars = 8 * 1024 * 1024

/**
 * Returns a page of a task's event log, as in streams and webhooks (spec/methods.md#tasksevents). `lastSequence` is the
 * number of the newest event; `afterSequence` continues after a page that ends before it.
 */
export const listTaskEvents: Run<'listTaskEvents'> = async (services, call) => {
  const { taskId, afterSequence, limit } = call.params()
  const task = await requireDelegatedOutline(services, call, taskId)
  const events: TaskEvent[] = []
  let chars = 0
  for (let after = afterSequence; events.length < limit && chars < pageMaxChars; after += 1) {
    const [event] = eventsBetween(task, after, after + 1)
    if (event === undefined) break
    if (event.kind === 'artifact-update') chars += roughBytesOf(event.artifact)
    events.push(event)
  }
  const lastSequence = task.events.length
  const more = afterSequence + events.length < lastSequence
  return { result: { taskId: task.id, events, lastSequence, more } }
}
