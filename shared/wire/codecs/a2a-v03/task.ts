import type { IncomingMessage } from '../../model/call.ts'
import {
  type Artifact,
  contextOf,
  type Message,
  type Part,
  type Role,
  type Task,
  type TaskState,
  type TaskStatus,
} from '../../model/task.ts'
import { answerMessage, linksOut, statusMessage, type TaskRef } from '../a2a-task.ts'
import type { Unserialized } from '../parley/shapes.ts'
import type {
  WireArtifact,
  WireMessage,
  WirePart,
  WireRole,
  WireState,
  WireStatus,
  WireTask,
} from './shapes.ts'

/** Writes the answer to a message. */
export function answerOut(task: Task): Unserialized<WireTask | WireMessage> {
  const message = answerMessage(task)
  return message === undefined ? taskOut(task) : messageOut(message)
}

export function taskOut(task: Task): Unserialized<WireTask> {
  return {
    kind: 'task',
    id: task.id,
    contextId: task.contextName ?? task.contextId,
    status: statusOut(task.status, { ...contextOf(task), taskId: task.id }),
    history: task.history.map(messageOut),
    artifacts: task.artifacts.map(artifactOut),
    metadata: linksOut(task),
  }
}

/** A2A has no states for a pause for a payment or a bid. */
function stateOut(state: TaskState): WireState {
  return state === 'payment-required' || state === 'negotiation-bid-submitted' ? 'input-required' : state
}

export function statusOut(status: TaskStatus, ref: TaskRef): Unserialized<WireStatus> {
  const { state, timestamp } = status
  const message = statusMessage(status, ref)
  return { state: stateOut(state), timestamp, message: message && messageOut(message) }
}

/** Writes the IDs of the context and the message as the client chose them. */
export function messageOut(message: Message | IncomingMessage): Unserialized<WireMessage> {
  return {
    kind: 'message',
    role: roleOut(message.role),
    parts: message.parts.map(partOut),
    messageId: message.messageName ?? message.messageId,
    contextId: message.contextName ?? message.contextId,
    taskId: message.taskId,
    referenceTaskIds: message.referenceTaskIds,
    extensions: message.extensions,
    metadata: message.metadata,
  }
}

/** A2A has no system messages and no `assistant`; both are from the server. */
function roleOut(role: Role): WireRole {
  return role === 'user' ? 'user' : 'agent'
}

export function artifactOut(artifact: Artifact): Unserialized<WireArtifact> {
  const { artifactId, name, description, parts, extensions, metadata } = artifact
  return {
    artifactId,
    name: name === '' ? undefined : name,
    description,
    parts: parts.map(partOut),
    extensions,
    metadata,
  }
}

/** Text and data parts have no media type and no file name in this version. A `LazyPart` is returned unchanged. */
export function partOut(part: Part): Unserialized<WirePart> {
  const { metadata } = part
  if (part.kind === 'text') return { kind: 'text', text: part.text, metadata }
  if (part.kind === 'data') return { kind: 'data', data: part.data, metadata }
  if (part.kind !== 'file') return part
  const { name, mimeType, bytes, uri } = part.file
  return { kind: 'file', file: { name, mimeType, bytes, uri }, metadata }
}
