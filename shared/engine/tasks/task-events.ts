import type { StoredEvent, TaskEvent } from '@parley/wire/model/event'
import { contextOf } from '@parley/wire/model/task'
import type { TaskRecord } from '../store/store.ts'

/**
 * Returns the events after a sequence number. Stored events contain only the artifact id, so the artifact
 * itself is taken from the task.
 */
export function eventsAfter(record: TaskRecord, sequence: number): TaskEvent[] {
  return eventsBetween(record, sequence, record.events.length)
}

/** Returns the events with a sequence number above `after`, up to `last`. */
export function eventsBetween(record: TaskRecord, after: number, last: number): TaskEvent[] {
  return record.events.slice(after, last).map((event) => withArtifact(record, event))
}

function withArtifact(record: TaskRecord, event: StoredEvent): TaskEvent {
  const ids = { taskId: record.id, ...contextOf(record) }
  if (event.kind === 'status-update') return { ...event, ...ids }
  const { artifactId, ...envelope } = event
  const artifact = record.artifacts.find((candidate) => candidate.artifactId === artifactId)
  // Artifacts are committed together with their events, and a terminal task does not change.
  if (artifact === undefined) throw new Error(`event ${event.eventId} refers to a missing artifact`)
  return { ...envelope, ...ids, artifact }
}
