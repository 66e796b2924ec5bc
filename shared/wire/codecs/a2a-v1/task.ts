import type { IncomingMessage } from '../../model/call.ts'
import type { Artifact, Message, Part, Task, TaskStatus } from '../../model/task.ts'
import { linksOut, statusMessage, type TaskRef } from '../a2a-task.ts'
import { unwrapped } from './message.ts'
import { timeOut } from './proto-json.ts'
import { roleOut, stateOut } from './states.ts'

/** Write the model in ProtoJSON: absent fields and empty lists do not appear in the JSON. */

export function taskOut(task: Task) {
  return {
    id: task.id,
    contextId: task.contextName ?? task.contextId,
    status: statusOut(task.status, { ...task, taskId: task.id }),
    artifacts: filled(task.artifacts)?.map(artifactOut),
    history: filled(task.history)?.map(messageOut),
    metadata: linksOut(task),
  }
}

export function statusOut(status: TaskStatus, ref: TaskRef) {
  const message = statusMessage(status, ref)
  return {
    state: stateOut(status.state),
    timestamp: timeOut(status.timestamp),
    message: message && messageOut(message),
  }
}

export function messageOut(message: Message | IncomingMessage) {
  return {
    messageId: message.messageName ?? message.messageId,
    contextId: message.contextName ?? message.contextId,
    taskId: message.taskId,
    role: roleOut(message.role),
    parts: message.parts.map(partOut),
    metadata: message.metadata,
    extensions: filled(message.extensions),
    referenceTaskIds: filled(message.referenceTaskIds),
  }
}

export function artifactOut({ artifactId, name, description, parts, metadata, extensions }: Artifact) {
  return {
    artifactId,
    name: name === '' ? undefined : name,
    description,
    parts: parts.map(partOut),
    metadata,
    extensions: filled(extensions),
  }
}

/** A part that is loaded later passes through unchanged. */
export function partOut(part: Part) {
  if (part.kind === 'text') {
    const { text, metadata, filename, mediaType } = part
    return { text, metadata, filename, mediaType }
  }
  if (part.kind === 'data') {
    const { filename, mediaType } = part
    const [data, metadata] = unwrapped(part.data, part.metadata)
    return { data, metadata, filename, mediaType }
  }
  if (part.kind === 'file') {
    const { name, mimeType, bytes, uri } = part.file
    return { raw: bytes, url: uri, metadata: part.metadata, filename: name, mediaType: mimeType }
  }
  return part
}

/** Undefined for an empty list. */
export function filled<Item>(list: readonly Item[] | undefined): readonly Item[] | undefined {
  return list === undefined || list.length === 0 ? undefined : list
}
