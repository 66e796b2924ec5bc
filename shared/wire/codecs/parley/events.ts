import type { ArtifactDelta, TaskEvent } from '../../model/event.ts'
import { isTerminal, type Task } from '../../model/task.ts'
import { artifactOut, statusOut } from './task.ts'

/** A numbered event, in streams, webhooks and the event log. */
export function eventOut(event: TaskEvent) {
  const envelope = {
    event_id: event.eventId,
    sequence: event.sequence,
    timestamp: event.timestamp,
    kind: event.kind,
    task_id: event.taskId,
    context_id: event.contextId,
  }
  return event.kind === 'status-update'
    ? { ...envelope, status: statusOut(event.status), final: event.final }
    : { ...envelope, artifact: artifactOut(event.artifact), append: false, last_chunk: true }
}

/**
 * A delta has neither an event id nor a number.
 * @param isFirst the first of its artifact on this stream, so that there is nothing to append to
 */
export function deltaOut(delta: ArtifactDelta, isFirst: boolean) {
  return {
    timestamp: delta.timestamp,
    kind: 'artifact-update',
    task_id: delta.taskId,
    context_id: delta.contextId,
    artifact: artifactOut(delta.artifact),
    append: !isFirst,
    last_chunk: false,
  }
}

/** The first frame of a stream: the present status of the task. Sequence 0: no event has happened yet. */
export function presentStatusOut(task: Task, sequence: number) {
  return {
    sequence,
    timestamp: task.status.timestamp,
    kind: 'status-update',
    task_id: task.id,
    context_id: task.contextId,
    status: statusOut(task.status),
    final: isTerminal(task.status.state),
  }
}
