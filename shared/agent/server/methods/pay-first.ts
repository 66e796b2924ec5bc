import { setTimeout as delay } from 'node:timers/promises'
import type { PurchaseResult } from '@parley/engine/payments/ledger/purchase'
import { PaymentRefused, PaymentRequired } from '@parley/engine/payments/x402/payment-refused'
import { readPresentedPayment } from '@parley/engine/payments/x402/presented-payment'
import { receiptHeaders, receiptOf } from '@parley/engine/payments/x402/x402'
import type { TaskRecord } from '@parley/engine/store/store'
import { skillIdIn, skillIdPath } from '@parley/wire/codecs/parley/metadata'
import { submittedPaymentIn } from '@parley/wire/codecs/x402'
import { ParleyError } from '@parley/wire/errors'
import type { IncomingMessage } from '@parley/wire/model/call'
import { inAdvance, type Price } from '@parley/wire/model/price'
import { areCallers, callersMessages } from '../../author/callers-messages.ts'
import { priceOf } from '../../author/price-of.ts'
import { fitSkill, type SkillMessage } from '../runner/fit-skill.ts'
import { dueTerms, resourceOf } from '../runner/payment-prompt.ts'
import type { MessagePayment } from './message-claims.ts'
import type { Call, Services } from './method.ts'
import { claimQueuePlace } from './queue-place.ts'

/**
 * Accepts the payment for a new task after all other checks (spec/payments.md#settlement). Undefined if the task is free.
 * @throws PaymentRequired (402); ParleyError InvalidParams for data that the skill would reject, TaskNotFound or ContextNotFound
 * for other owners' IDs, Unavailable, Conflict
 */
export async function payForTask(
  services: Services,
  call: Call,
  { message, taskId }: { message: IncomingMessage; taskId: string },
): Promise<MessagePayment | undefined> {
  const { payments, agent, store } = services
  if (payments === undefined) return undefined
  const prices = inAdvance(priceOf(agent, message))
  if (prices.length === 0) return undefined
  const { contextId } = message
  if ((await store.loadTask(taskId)) !== undefined)
    throw new ParleyError('TaskNotFound', { data: { taskId } })
  if (contextId !== undefined && (await store.isAnothersContext(contextId, call.caller.id)))
    throw new ParleyError('ContextNotFound', { data: { contextId } })
  await requireFit(services, taskId, [message])
  return pay(services, call, {
    message,
    taskId,
    purpose: purposeOfNew(taskId),
    prices: payments.acceptedTerms(prices),
  })
}

/**
 * Accepts the payment that a task in `payment-required` waits for: the one that its handler requested, or the price of its
 * message. Undefined if none is due.
 * @throws as `payForTask`; ParleyError InvalidParams when the message names a skill with another price
 */
export async function payForMessage(
  services: Services,
  call: Call,
  task: TaskRecord,
  message: IncomingMessage,
): Promise<MessagePayment | undefined> {
  const { payments, agent } = services
  if (payments === undefined) return undefined
  requireSamePrice(services, task, message)
  if (task.status.state !== 'payment-required') return undefined
  const prices = dueTerms({ agent, payments }, task)
  if (prices.length === 0) return undefined
  const isWork = task.unpaid !== true
  if (isWork) await requireFit(services, task.id, [...callersMessages(task.history), message])
  // The number of events does not change while the task waits, so that concurrent payments have the same purpose.
  const purpose = isWork ? `${task.id}/${task.events.length}` : purposeOfNew(task.id)
  return pay(services, call, { message, taskId: task.id, purpose, prices })
}

const purposeOfNew = (taskId: string) => `${taskId}/new`

/**
 * Whether a payment in the metadata of the message already pays for the task. The message then repeats an earlier one, because
 * a payment is accepted once.
 */
export async function hasPaid(
  { payments }: Services,
  { payments: ids = [] }: TaskRecord,
  { metadata }: IncomingMessage,
): Promise<boolean> {
  if (payments === undefined || ids.length === 0 || submittedPaymentIn(metadata) === undefined) return false
  try {
    const presented = readPresentedPayment({}, metadata)
    return presented !== undefined && (await payments.includes(ids, presented))
  } catch (error) {
    if (error instanceof PaymentRefused) return false
    throw error
  }
}

/** Waits for the task that another connection is paying for with the same request. Undefined after 15 s. */
export async function taskOfSameRequest(
  { store }: Services,
  taskId: string,
  owner: string,
): Promise<TaskRecord | undefined> {
  for (let waited = 0; waited < 15_000; waited += 100) {
    const task = await store.findTask(taskId, owner)
    if (task !== undefined) return task
    await delay(100)
  }
  return undefined
}

export const isPaymentInProgress = (error: unknown): boolean =>
  error instanceof ParleyError && error.error === 'Conflict' && error.data['reason'] === 'payment_in_progress'

interface Purchase {
  message: IncomingMessage
  taskId: string
  purpose: string
  prices: Price[]
}

async function pay(services: Services, call: Call, purchase: Purchase): Promise<MessagePayment> {
  const { payments } = services
  if (payments === undefined) throw new Error('this agent has no payments')
  const { message, taskId, purpose, prices } = purchase
  try {
    const presented = readPresentedPayment(call.headers, message.metadata)
    if (presented === undefined) throw new PaymentRefused('payment_required')
    // A full queue refuses the message before money moves.
    const place = await claimQueuePlace(services, call.caller.id)
    place.release()
    await call.takeSignature()
    const bought = await payments.buy({ owner: call.caller.id, taskId, purpose, terms: prices }, presented)
    return paidBy(services, bought)
  } catch (error) {
    if (!(error instanceof PaymentRefused)) throw error
    const resource = resourceOf(services.agent, call.baseUrl())
    throw new PaymentRequired({ error: error.refusal, resource, terms: prices, sandbox: payments.sandbox })
  }
}

function paidBy({ payments }: Services, bought: PurchaseResult): MessagePayment {
  const { payment } = bought
  return {
    id: payment.id,
    held: payment.txHash === undefined,
    receipt: receiptOf(payment),
    headers: receiptHeaders(payment),
    giveBack: async () => payments?.releasePurchase(bought),
    bound: async () => payments?.notifyIfDecided(payment),
  }
}

/** Refuses a message before payment if its skill would reject it. @throws ParleyError InvalidParams */
async function requireFit({ agent }: Services, taskId: string, messages: SkillMessage[]): Promise<void> {
  const fit = await fitSkill(agent, messages)
  if (!('reason' in fit)) return
  const issues = [{ path: 'message.parts', message: fit.reason }]
  throw new ParleyError('InvalidParams', { data: { taskId, issues } })
}

/** Checks that the skill that the caller named last has the price that was paid. @throws ParleyError InvalidParams */
function requireSamePrice({ agent }: Services, task: TaskRecord, message: IncomingMessage): void {
  if (typeof skillIdIn(message.metadata) !== 'string') return
  const callers = areCallers(task.history)
  const first = task.history.find((_message, at) => callers[at])
  if (priceOf(agent, message) === priceOf(agent, first ?? {})) return
  const issues = [
    { path: skillIdPath, message: 'names a skill with another price than the skill of the task' },
  ]
  throw new ParleyError('InvalidParams', { data: { taskId: task.id, issues } })
}
