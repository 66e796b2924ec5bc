import { idsOf } from '../../model/ids.ts'
import type {
  Artifact,
  ContextRef,
  JsonObject,
  Message,
  Part,
  StatusPayment,
  Task,
  TaskStatus,
} from '../../model/task.ts'
import { bidStatusKey } from '../parley/metadata.ts'
import { paymentMetadata } from '../x402.ts'
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

/** Undefined for a task without a parent and without children. */
export function linksOut({ parent, rootTaskId, children = [] }: Task) {
  const known = children.filter(({ agent, taskId }) => agent !== undefined && taskId !== undefined)
  if (parent === undefined && known.length === 0) return undefined
  return { parent, rootTaskId, children: filled(known) }
}

/** The task and the context of a status or a message. */
export interface TaskRef extends ContextRef {
  taskId: string
}

/** The default texts of statuses with a payment. */
const paymentTexts: Record<StatusPayment['status'], string> = {
  'payment-required': 'Payment is required',
  'payment-rejected': 'The payment was rejected',
  'payment-verified': 'The payment is being settled',
  'payment-completed': 'The payment was received',
  'payment-failed': 'The payment failed',
}

/** The metadata and the default text of the status message for states that the protocol lacks. */
function noticeOf({ state, payment }: TaskStatus): { metadata: JsonObject; text: string } | undefined {
  if (state === 'negotiation-bid-submitted')
    return {
      metadata: { ...(payment && paymentMetadata(payment)), [bidStatusKey]: 'bid-submitted' },
      text: 'A bid was submitted',
    }
  const shown =
    payment ?? (state === 'payment-required' ? { status: 'payment-required' as const } : undefined)
  return shown && { metadata: paymentMetadata(shown), text: paymentTexts[shown.status] }
}

export function statusOut(status: TaskStatus, ref: TaskRef) {
  const message = statusMessage(status, ref)
  return {
    state: stateOut(status.state),
    timestamp: timeOut(status.timestamp),
    message: message && messageOut(message),
  }
}

/**
 * Returns the message of a status. A2A has no state for a payment or a bid, so the metadata of the message states which of
 * them the task waits for, and which payments it has received. The message is created if there is none; its ID is the same
 * in every answer.
 */
export function statusMessage(
  status: TaskStatus,
  { taskId, contextId, contextName }: TaskRef,
): Message | undefined {
  const { timestamp, message } = status
  const notice = noticeOf(status)
  if (notice === undefined) return message
  const given: Message = message ?? {
    role: 'agent',
    parts: [{ kind: 'text', text: notice.text }],
    messageId: idsOf(taskId)(timestamp).id,
    taskId,
    contextId,
    ...(contextName !== undefined && { contextName }),
  }
  return { ...given, metadata: { ...given.metadata, ...notice.metadata } }
}

export function messageOut(message: Message) {
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
