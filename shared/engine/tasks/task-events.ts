import type { StoredEvent, TaskEvent } from '@parley/wire/model/event'
import type { TaskRecord } from '../store/store.ts'

/**
 * Events after a sequence number. Stored events contain the artifact id; the artifact itself is added from
 * the task.
 */
export function eventsAfter(record: TaskRecord, sequence: number): TaskEvent[] {
  return eventsBetween(record, sequence, record.events.length)
}

/** Events with a sequence number above `after`, up to `last`. */
export function eventsBetween(record: TaskRecord, after: number, last: number): TaskEvent[] {
  return record.events.slice(after, last).map((event) => withArtifact(record, event))
}

function withArtifact(record: TaskRecord, event: StoredEvent): TaskEvent {
  const ids = { taskId: record.id, contextId: record.contextId }
  if (event.kind === 'status-update') return { ...event, ...ids }
  const { artifactId, ...envelope } = event
  const artifact = record.artifacts.find((candidate) => candidate.artifactId === artifactId)
  // Artifacts are committed with their events, and a terminal task does not change.
  if (artifact === undefined) throw new Error(`event ${event.eventId} refers to a missing artifact`)
  return { ...envelope, ...ids, artifact }
}
