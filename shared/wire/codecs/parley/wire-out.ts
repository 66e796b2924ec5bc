import type { ArtifactDelta, TaskEvent } from '../../model/event.ts'
import type { Artifact, Message, Part, Task, TaskStatus } from '../../model/task.ts'

/** The shapes of the wire on the way out, in snake_case (spec/tasks.md#task). */
export function taskOut(task: Task, historyLength?: number) {
  const history =
    historyLength === undefined
      ? task.history
      : task.history.slice(Math.max(0, task.history.length - historyLength))
  return {
    id: task.id,
    context_id: task.contextId,
    kind: 'task',
    status: statusOut(task.status),
    history: history.map(messageOut),
    artifacts: task.artifacts.map(artifactOut),
  }
}

export function statusOut(status: TaskStatus) {
  const { state, timestamp, message } = status
  return message === undefined ? { state, timestamp } : { state, timestamp, message: messageOut(message) }
}

/** `undefined` fields do not appear in JSON. */
export function messageOut(message: Message) {
  return {
    role: message.role,
    parts: message.parts.map(partOut),
    kind: 'message',
    message_id: message.messageId,
    context_id: message.contextId,
    task_id: message.taskId,
    reference_task_ids: message.referenceTaskIds,
    metadata: message.metadata,
  }
}

export function artifactOut(artifact: Artifact) {
  return { artifact_id: artifact.artifactId, name: artifact.name, parts: artifact.parts.map(partOut) }
}

export function partOut(part: Part) {
  if (part.kind !== 'file') return part
  const { name, mimeType, bytes, uri } = part.file
  return { kind: 'file', file: { name, mime_type: mimeType, bytes, uri }, metadata: part.metadata }
}

/** An event as streams and webhooks carry it. */
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
 * For live readers only: no event id, no number.
 * @param isFirst it is the first of its artifact that this reader gets: there is nothing yet that it could be appended to
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

/** The first frame of a stream: where the task stands now. Sequence 0 = nothing has happened yet. */
export function presentStatusOut(task: Task, sequence: number, final: boolean) {
  return {
    sequence,
    timestamp: task.status.timestamp,
    kind: 'status-update',
    task_id: task.id,
    context_id: task.contextId,
    status: statusOut(task.status),
    final,
  }
}
