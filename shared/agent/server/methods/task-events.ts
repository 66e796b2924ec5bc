import { eventsBetween } from '@parley/engine/tasks/task-events'
import { roughBytesOf } from '@parley/wire/codecs/parley/lazy-part'
import { parseParams, taskEvents } from '@parley/wire/codecs/parley/params'
import { eventOut } from '@parley/wire/codecs/parley/wire-out'
import type { Answer, Call, Services } from './method.ts'
import { requireOutline } from './tasks.ts'

/** A page ends once its events have so many characters: they hold whole artifacts. */
const pageMaxChars = 8 * 1024 * 1024

/**
 * The task's event log, as streams and webhooks tell it, for those who were away. `last_sequence` is the number of the
 * newest event; a page that ends before it is read on with `after_sequence`.
 */
export async function listTaskEvents(services: Services, call: Call): Promise<Answer> {
  const { taskId, afterSequence, limit } = parseParams(taskEvents, call.params)
  const task = await requireOutline(services, call, taskId)
  const events: unknown[] = []
  let chars = 0
  for (let after = afterSequence; events.length < limit && chars < pageMaxChars; after += 1) {
    const [event] = eventsBetween(task, after, after + 1)
    if (event === undefined) break
    if (event.kind === 'artifact-update') chars += roughBytesOf(event.artifact)
    events.push(eventOut(event))
  }
  const lastSequence = task.events.length
  const more = afterSequence + events.length < lastSequence
  return { result: { task_id: task.id, events, last_sequence: lastSequence, more } }
}
