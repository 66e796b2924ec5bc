import { awaitedPayment, type PaymentRequired } from '@parley/engine/payments/x402/payment-refused'
import type { TaskRecord } from '@parley/engine/store/store'
import { agentMessage } from '@parley/engine/tasks/agent-message'
import { unpaidMaxMs } from '@parley/engine/tasks/expiry'
import { apply } from '@parley/engine/tasks/transitions'
import { ParleyError } from '@parley/wire/errors'
import { priceReason, promptPart } from '../runner/payment-prompt.ts'
import type { Services } from './method.ts'

/**
 * The number of tasks of one caller that may wait for a payment. They are stored before anything is paid. Concurrent messages
 * may exceed the limit slightly.
 */
export const unpaidMax = 100

/** @throws ParleyError TooManyRequests when too many tasks of the caller wait for a payment */
export async function requireFewUnpaid({ store }: Services, owner: string): Promise<void> {
  const states = ['payment-required'] as const
  const { total = 0 } = await store.outlineTasks(
    { owner, states, limit: 1, count: true, includeArtifacts: false },
    () => {},
  )
  if (total < unpaidMax) return
  throw new ParleyError('TooManyRequests', {
    message: `${unpaidMax} tasks of this caller wait for a payment, which is the maximum: pay or cancel some`,
    data: { reason: 'unpaid_tasks', max: unpaidMax },
    headers: { 'retry-after': '60' },
  })
}

/** Returns the record of a new task that waits for the price of its message. It has no place in the queue. */
export function unpaidRecord(record: TaskRecord, required: PaymentRequired): TaskRecord {
  const { terms, sandbox } = required
  const text = `${priceReason}: pay with x402, and send the payment in a message with the ID of this task.`
  const reason = promptPart(terms, sandbox, { reason: priceReason })
  return apply(record, {
    kind: 'pause',
    state: 'payment-required',
    unpaid: true,
    message: agentMessage(record, [{ kind: 'text', text }, reason]),
    payment: awaitedPayment(required),
    dueAt: Math.min(Date.now() + unpaidMaxMs, record.deadlineAt ?? Number.POSITIVE_INFINITY),
    workedMs: 0,
  })
}
