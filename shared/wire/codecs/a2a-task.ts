import { idsOf } from '../model/ids.ts'
import type { ContextRef, JsonObject, Message, StatusPayment, Task, TaskStatus } from '../model/task.ts'
import { bidStatusKey } from './parley/metadata.ts'
import { paymentMetadata } from './x402.ts'

/** The parts of a task that both versions of A2A express in the same way, because the protocol has no fields for them. */

/** The tasks that are related by delegation, as metadata. Undefined for a task without a parent and without children. */
export function linksOut({ parent, rootTaskId, children = [] }: Task) {
  const known = children.filter(({ agent, taskId }) => agent !== undefined && taskId !== undefined)
  if (parent === undefined && known.length === 0) return undefined
  return { parent, rootTaskId, children: known.length === 0 ? undefined : known }
}

/**
 * Returns the message of an agent that answers with a message instead of the task. Undefined if the answer is the task, for
 * example because it has receipts.
 */
export function answerMessage({ answersByMessage, status }: Task): Message | undefined {
  const { state, message, payment } = status
  const isMessage = answersByMessage === true && state === 'completed' && payment === undefined
  return isMessage ? message : undefined
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
