import type { TaskRecord } from '@parley/engine/store/store'
import { apply, type MessageTerms, paymentOf } from '@parley/engine/tasks/transitions'
import { ancestorsIn } from '@parley/wire/codecs/parley/metadata'
import { withoutPayload } from '@parley/wire/codecs/x402'
import type { IncomingMessage, SendMessage } from '@parley/wire/model/call'
import type { Message, Task } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import type { MessagePayment } from './message-claims.ts'

/** The result of accepting a message: the stored task and the function that queues it. */
export interface AcceptedMessage {
  record: TaskRecord
  /** Hands the task to the scheduler. Call it once the answer, or the follower of a stream, is ready. */
  start: () => void
  /** Response headers, which contain the receipt of a payment. */
  headers?: Record<string, string>
}

export type NewTask = SendMessage & {
  taskId: string
  acceptedOutputModes: string[]
  /** The referenced tasks of other agents. */
  foreign: Task[]
}

/** Creates a task in `submitted`, as it is first stored. */
export function newRecord(parts: {
  owner: string
  signed: boolean
  /** See `messageOf`. */
  isPaid: boolean
  at: string
  context: { contextId: string; contextName: string | undefined }
  task: NewTask
  payment: MessagePayment | undefined
  terms: MessageTerms
}): TaskRecord {
  const { owner, signed, isPaid, at, context, task, payment, terms } = parts
  const { contextId, contextName } = context
  const empty = emptyRecord({ id: task.taskId, contextId, owner, at })
  return {
    ...empty,
    ...(payment && { status: { ...empty.status, payment: paymentOf(payment) } }),
    ...(contextName !== undefined && { contextName }),
    history: [messageOf(task.message, task.taskId, context, isPaid)],
    referenceTaskIds: task.message.referenceTaskIds ?? [],
    acceptedOutputModes: task.acceptedOutputModes,
    ...(signed && { signed }),
    ...(task.foreign.length > 0 && { foreignReferences: task.foreign }),
    ...(payment && { payments: [payment.id] }),
    ...(payment?.held === true && { heldBy: payment.id }),
    ...terms,
    ...ancestorsOf(task.message, terms.delegation),
  }
}

/** Creates the record of a task that is canceled before its message arrives. It has no message. */
export function canceledRecord(ids: { id: string; contextId: string; owner: string }): TaskRecord {
  return apply(emptyRecord({ ...ids, at: timestamp() }), { kind: 'cancel' })
}

function emptyRecord({
  id,
  contextId,
  owner,
  at,
}: Record<'id' | 'contextId' | 'owner' | 'at', string>): TaskRecord {
  return {
    id,
    contextId,
    owner,
    status: { state: 'submitted', timestamp: at },
    history: [],
    artifacts: [],
    version: 0,
    events: [],
    createdAt: at,
    updatedAt: at,
    starts: 0,
    workedMs: 0,
    referenceTaskIds: [],
    acceptedOutputModes: [],
  }
}

/** The calling agent states its task and the first task of the chain. Both are data: they grant access to nothing. */
function ancestorsOf(
  { metadata }: IncomingMessage,
  delegation: TaskRecord['delegation'],
): Partial<TaskRecord> {
  const { parentTaskId, rootTaskId } = ancestorsIn(metadata)
  if (delegation === undefined || parentTaskId === undefined || rootTaskId === undefined) return {}
  return { parent: { agent: delegation.delegate, taskId: parentTaskId }, rootTaskId }
}

/**
 * Returns the caller's message as sent, with the IDs of its task and context.
 * @param isPaid whether this agent takes payments. A signed payment is then removed; otherwise it may be for an agent that
 * the handler calls.
 */
export function messageOf(
  message: IncomingMessage,
  taskId: string,
  context: { contextId: string; contextName?: string | undefined },
  isPaid: boolean,
): Message {
  const { role, parts, messageId, messageName, referenceTaskIds, extensions, metadata } = message
  const { contextId, contextName } = context
  const kept: Message = { role, parts, messageId, contextId, taskId }
  if (messageName !== undefined) kept.messageName = messageName
  if (contextName !== undefined) kept.contextName = contextName
  if (extensions !== undefined) kept.extensions = extensions
  if (referenceTaskIds !== undefined) kept.referenceTaskIds = referenceTaskIds
  if (metadata !== undefined) kept.metadata = isPaid ? withoutPayload(metadata) : metadata
  return kept
}
