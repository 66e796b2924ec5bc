import type { TaskRecord } from '@parley/engine/store/store'
import { agentText } from '@parley/engine/tasks/agent-message'
import type { Change, MessageTerms } from '@parley/engine/tasks/transitions'
import { ParleyError } from '@parley/wire/errors'
import type { IncomingMessage } from '@parley/wire/model/call'
import { contextOf, isPaused, isTerminal, type Message } from '@parley/wire/model/task'
import { dataOf } from '../../author/build-context.ts'
import type { InlineWebhook } from './inline-webhook.ts'
import type { MessageClaims, MessagePayment } from './message-claims.ts'
import type { Call, Services } from './method.ts'
import { type AcceptedMessage, messageOf } from './new-record.ts'
import { payForMessage } from './pay-first.ts'

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
  },
): Promise<AcceptedMessage> {
  const { claims, message: sent, webhook, terms } = parts
  requireSameContext(task, sent.contextId)
  const message = messageOf(sent, task.id, contextOf(task))
  const signed = call.caller.signature !== undefined
  // This is checked before anything is claimed, so that an ended task refuses the message even if the queue is full.
  changeOf(task, message, { pricedAt: task, signed, terms, payment: undefined })
  const payment = await claims.payment(() => payForMessage(services, call, task, sent))
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
      message,
      signed,
      terms,
      payment: payment && { id: payment.id, held: payment.held },
    }
  throw new ParleyError('UnsupportedOperation', {
    message: `Task is ${state}: wait until it asks for input or has ended`,
    data: { taskId: task.id, state },
  })
}

/** The data `{accept: true}` continues the task; `{accept: false}` ends it in `rejected` (spec/tasks.md#bids). */
function answerToBid(
  task: TaskRecord,
  message: Message,
  given: { signed: boolean; terms: MessageTerms },
): Change {
  const accept = dataOf(message.parts)['accept']
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
