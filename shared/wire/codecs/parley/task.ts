import type { Artifact, Message, Part, Task, TaskStatus } from '../../model/task.ts'
import type {
  Unserialized,
  WireArtifact,
  WireFile,
  WireMessage,
  WirePart,
  WireStatus,
  WireTask,
  WireTaskMetadata,
} from './shapes.ts'

/** Writes a task in snake_case (spec/tasks.md#task). */
export function taskOut(task: Task): Unserialized<WireTask> {
  return {
    id: task.id,
    context_id: task.contextId,
    kind: 'task',
    status: statusOut(task.status),
    history: task.history.map(messageOut),
    artifacts: task.artifacts.map(artifactOut),
    metadata: taskMetadataOut(task),
  }
}

/** Undefined for a task without a parent and without children. */
function taskMetadataOut({
  parent,
  rootTaskId,
  children = [],
}: Task): Unserialized<WireTaskMetadata> | undefined {
  const known = children.flatMap(({ agent, taskId }) =>
    agent === undefined || taskId === undefined ? [] : [{ agent, task_id: taskId }],
  )
  if (parent === undefined && known.length === 0) return undefined
  return {
    parent: parent && { agent: parent.agent, task_id: parent.taskId },
    root_task_id: rootTaskId,
    children: known.length === 0 ? undefined : known,
  }
}

export function statusOut(status: TaskStatus): Unserialized<WireStatus> {
  const { state, timestamp, message } = status
  return message === undefined ? { state, timestamp } : { state, timestamp, message: messageOut(message) }
}

/** Writes a message; undefined fields do not appear in the JSON. */
export function messageOut(message: Message): Unserialized<WireMessage> {
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

export function artifactOut(artifact: Artifact): Unserialized<WireArtifact> {
  const { artifactId, name, description, metadata } = artifact
  return { artifact_id: artifactId, name, description, parts: artifact.parts.map(partOut), metadata }
}

/** The media type and the file name that an A2A client stated for a text or data part are left out. */
export function partOut(part: Part): Unserialized<WirePart> {
  if (part.kind !== 'file') {
    if (part.mediaType === undefined && part.filename === undefined) return part
    const { mediaType: _mediaType, filename: _filename, ...rest } = part
    return rest
  }
  const { name, mimeType, bytes, uri } = part.file
  return { kind: 'file', file: { name, mime_type: mimeType, bytes, uri }, metadata: part.metadata }
}

/** The IDs of a received task. */
export function idsOf({ id, context_id: contextId }: WireTask) {
  return { taskId: id, contextId }
}

export function artifactIdOf({ artifact_id: artifactId }: WireArtifact): string {
  return artifactId
}

/** The forms of a file that a signature may cover: first as Parley writes it, then as a caller may have written it. */
export function signedForms({ name, mimeType, mime_type, bytes, uri }: WireFile): [object, object] {
  return [
    { name, mime_type: mime_type ?? mimeType, bytes, uri },
    { name, mimeType: mimeType ?? mime_type, bytes, uri },
  ]
}
