import type { StoredEvent, TaskEvent } from '@parley/wire/model/event'
import type { TaskRecord } from '../store/store.ts'

/** Stored events name their artifact; here they are filled in from the task. */
export function eventsAfter(record: TaskRecord, sequence: number): TaskEvent[] {
  return eventsBetween(record, sequence, record.events.length)
}

/** Those with a number above `after`, up to `last`. */
export function eventsBetween(record: TaskRecord, after: number, last: number): TaskEvent[] {
  return record.events.slice(after, last).map((event) => filledIn(record, event))
}

function filledIn(record: TaskRecord, event: StoredEvent): TaskEvent {
  const ids = { taskId: record.id, contextId: record.contextId }
  if (event.kind === 'status-update') return { ...event, ...ids }
  const { artifactId, ...envelope } = event
  const artifact = record.artifacts.find((made) => made.artifactId === artifactId)
  // Artifacts and their events are one commit, and an ended task does not change.
  if (artifact === undefined) throw new Error(`event ${event.eventId} names an artifact that is not there`)
  return { ...envelope, ...ids, artifact }
}
