import { awaitedPayment, PaymentRequired } from '@parley/engine/payments/x402/payment-refused'
import type { TaskRecord } from '@parley/engine/store/store'
import { agentText } from '@parley/engine/tasks/agent-message'
import type { Change, MessageTerms } from '@parley/engine/tasks/transitions'
import { bidAnswerIn } from '@parley/wire/codecs/parley/metadata'
import { rejectsPayment } from '@parley/wire/codecs/x402'
import { ParleyError } from '@parley/wire/errors'
import type { IncomingMessage } from '@parley/wire/model/call'
import { contextOf, isPaused, isTerminal, type Message } from '@parley/wire/model/task'
import { dataOf } from '../../author/build-context.ts'
import type { InlineWebhook } from './inline-webhook.ts'
import type { MessageClaims, MessagePayment } from './message-claims.ts'
import type { Call, Services } from './method.ts'
import { type AcceptedMessage, messageOf } from './new-record.ts'
import { hasPaid, payForMessage } from './pay-first.ts'

/**
 * Continues a paused task with a message (back to `submitted`, without an event). A task in any other state refuses it.
 * @throws ParleyError TaskImmutable, UnsupportedOperation, InvalidParams (another context, or a bid answered without `accept`)
 */
export async function continueTask(
  services: Services,
  call: Call,
  task: TaskRecord,
  parts: {
    claims: MessageClaims
    message: IncomingMessage
    webhook: InlineWebhook | undefined
    terms: MessageTerms
    /** See `SendMessage`. */
    pausesUnpaid: boolean | undefined
  },
): Promise<AcceptedMessage> {
  const { claims, message: sent, webhook, terms, pausesUnpaid = false } = parts
  if (pausesUnpaid && (await hasPaid(services, task, sent))) return unchanged(claims, task)
  requireSameContext(task, sent.contextId)
  const message = messageOf(sent, task.id, contextOf(task), services.payments !== undefined)
  const signed = call.caller.signature !== undefined
  // This is checked before anything is claimed, so that an ended task refuses the message even if the queue is full.
  changeOf(task, message, { pricedAt: task, signed, terms, payment: undefined })
  if (isRejected(task, sent)) return rejectPayment(services, claims, task)
  const payment = await unlessUnpaid(
    pausesUnpaid,
    claims.payment(() => payForMessage(services, call, task, sent)),
  )
  if (payment instanceof PaymentRequired) return await stillUnpaid(services, claims, task, payment)
  const place = await claims.queuePlace()
  await claims.signature()
  await claims.webhook(webhook, task, false)
  const record = await claims.commit(() =>
    services.engine.change(task, (now) => changeOf(now, message, { pricedAt: task, signed, terms, payment })),
  )
  const start = () => {
    if (record.status.state === 'submitted' && payment?.held !== true)
      services.scheduler.enqueue({ taskId: task.id, version: record.version, owner: task.owner }, place)
    else place.release()
    if (payment?.held === true) void payment.bound()
  }
  return { record, start, ...(payment && { headers: payment.headers }) }
}

/** Returns the payment. If none was accepted and a task may wait for one, returns the required payment. */
export async function unlessUnpaid(
  pausesUnpaid: boolean,
  payment: Promise<MessagePayment | undefined>,
): Promise<MessagePayment | PaymentRequired | undefined> {
  try {
    return await payment
  } catch (error) {
    if (pausesUnpaid && error instanceof PaymentRequired) return error
    throw error
  }
}

async function unchanged(
  claims: MessageClaims,
  record: TaskRecord,
  headers?: Record<string, string>,
): Promise<AcceptedMessage> {
  await claims.signature()
  return { record, start: () => {}, ...(headers && { headers }) }
}

/**
 * Answers a message without an accepted payment with the task, which still waits for one. The message is not stored. A refusal
 * replaces the last one and adds no event, so that refused payments do not make the task larger.
 */
async function stillUnpaid(
  { engine }: Services,
  claims: MessageClaims,
  task: TaskRecord,
  required: PaymentRequired,
): Promise<AcceptedMessage> {
  if (required.refusal === 'payment_required') return await unchanged(claims, task, required.headers)
  await claims.signature()
  const payment = awaitedPayment(required)
  const record = await engine.change(task, () => ({ kind: 'refuse-payment', payment }))
  return { record, start: () => {}, headers: required.headers }
}

function isRejected({ status }: TaskRecord, { metadata }: IncomingMessage): boolean {
  return status.state === 'payment-required' && rejectsPayment(metadata)
}

/** The task ends like one that waits for an answer to a bid (spec/tasks.md#bids). */
async function rejectPayment(
  { engine }: Services,
  claims: MessageClaims,
  task: TaskRecord,
): Promise<AcceptedMessage> {
  await claims.signature()
  const record = await engine.change(task, (now) => {
    if (now.status.state !== 'payment-required') throw notWaiting(now)
    const message = agentText(now, 'The caller rejected the payment.')
    return { kind: 'reject', message, payment: { status: 'payment-rejected' } }
  })
  return { record, start: () => {} }
}

function notWaiting({ id: taskId, status: { state } }: TaskRecord): ParleyError {
  return new ParleyError('UnsupportedOperation', {
    message: `Task is ${state}: wait until it asks for input or has ended`,
    data: { taskId, state },
  })
}

function requireSameContext({ id: taskId, contextId: own }: TaskRecord, contextId: string | undefined): void {
  if (contextId === undefined || contextId === own) return
  throw new ParleyError('InvalidParams', {
    message: 'The task belongs to another context',
    data: { taskId, contextId },
  })
}

/** `pricedAt` is the task as it was when the message's price was determined. */
function changeOf(
  task: TaskRecord,
  message: Message,
  parts: {
    pricedAt: TaskRecord
    signed: boolean
    terms: MessageTerms
    payment: MessagePayment | undefined
  },
): Change {
  const { pricedAt, signed, terms, payment } = parts
  const { state } = task.status
  if (state === 'negotiation-bid-submitted') return answerToBid(task, message, { signed, terms })
  // The handler may have requested another amount since the payment.
  const isPriced = state === 'payment-required' || payment !== undefined
  const isSame = !isPriced || task.events.length === pricedAt.events.length
  if (isSame && (isPaused(state) || isTerminal(state)))
    return {
      kind: 'continue',
      // The message that pays the price of a task is not work for its handler.
      message: task.unpaid === true ? undefined : message,
      signed,
      terms,
      paidBy: payment && { id: payment.id, held: payment.held, receipt: payment.receipt },
    }
  throw notWaiting(task)
}

/** The data `{accept: true}`, or metadata, continues the task; `{accept: false}` ends it in `rejected` (spec/tasks.md#bids). */
function answerToBid(
  task: TaskRecord,
  message: Message,
  given: { signed: boolean; terms: MessageTerms },
): Change {
  const accept = dataOf(message.parts)['accept'] ?? bidAnswerIn(message.metadata)
  if (accept === true) return { kind: 'continue', message, ...given }
  if (accept === false)
    return { kind: 'reject', message: agentText(task, 'The caller did not accept the bid.') }
  const issues = [
    {
      path: 'message.parts',
      message:
        'must contain a data part {"accept": true} or {"accept": false}, because the task waits for an answer to a bid',
    },
  ]
  throw new ParleyError('InvalidParams', { data: { taskId: task.id, issues } })
}
