import type { TaskRecord } from '@parley/engine/store/store'
import { ourText } from '@parley/engine/tasks/our-message'
import type { Change } from '@parley/engine/tasks/transitions'
import type { Registration } from '@parley/engine/webhooks/registrations'
import type { MessageSend } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { isPaused, isTerminal, type Message, type Part } from '@parley/wire/model/task'
import { dataOf } from '../../author/build-context.ts'
import { claimRoom } from './claim-room.ts'
import type { InlineWebhook } from './inline-webhook.ts'
import { mayBeStored } from './may-be-stored.ts'
import type { Call, Services } from './method.ts'
import { type Accepted, messageOf } from './new-record.ts'
import { type Paid, payForMessage } from './pay-first.ts'

/**
 * A message to a task that exists: it continues a paused one (back to `submitted`, no event). Any other state refuses.
 * @throws ParleyError TaskImmutable, UnsupportedOperation, InvalidParams (another context; a bid answered without `accept`)
 */
export async function continueTask(
  services: Services,
  call: Call,
  task: TaskRecord,
  { message, webhook }: { message: MessageSend['message']; webhook: InlineWebhook | undefined },
): Promise<Accepted> {
  if (message.contextId !== undefined && message.contextId !== task.contextId) {
    throw new ParleyError('InvalidParams', {
      message: 'The task belongs to another context',
      data: { taskId: task.id, contextId: message.contextId },
    })
  }
  const said = messageOf(message, task.id, task.contextId)
  const signed = call.caller.signature !== undefined
  let paid: Paid | undefined
  const makeChange = (now: TaskRecord) => answerTo(now, said, { known: task, signed, paid })
  // Refused before room is asked for: an ended task is that, however long the line.
  makeChange(task)
  paid = await payForMessage(services, call, task, message)
  try {
    return await change(services, call, { task, webhook, makeChange, paid })
  } catch (error) {
    if (!mayBeStored(services, error)) await paid?.giveBack()
    throw error
  }
}

interface Continuation {
  task: TaskRecord
  webhook: InlineWebhook | undefined
  makeChange: (now: TaskRecord) => Change
  paid: Paid | undefined
}

async function change(
  services: Services,
  call: Call,
  { task, webhook, makeChange, paid }: Continuation,
): Promise<Accepted> {
  const slot = await claimRoom(services, task.owner)
  let registration: Registration | undefined
  try {
    await call.takeSignature()
    registration = await webhook?.register(task, false)
    const record = await services.engine.change(task, makeChange)
    const start = () => {
      if (record.status.state === 'submitted' && paid?.held !== true)
        services.scheduler.enqueue({ taskId: task.id, version: record.version, owner: task.owner }, slot)
      else slot.release()
      if (paid?.held === true) void paid.bound()
    }
    return paid === undefined ? { record, start } : { record, start, headers: paid.headers }
  } catch (error) {
    slot.release()
    // It may have been stored: then the task goes on, and its webhook is in force.
    if (!mayBeStored(services, error)) await registration?.undo()
    throw error
  }
}

/** `known`: the task as it was when it was looked at what the message costs. */
function answerTo(
  task: TaskRecord,
  said: Message,
  { known, signed, paid }: { known: TaskRecord; signed: boolean; paid: Paid | undefined },
): Change {
  const { state } = task.status
  if (state === 'negotiation-bid-submitted') return answerToBid(task, said, signed)
  // What is asked for now may not be what was asked, and paid, a moment ago.
  const asks = state === 'payment-required' || paid !== undefined
  const isSame = !asks || task.events.length === known.events.length
  if (isSame && (isPaused(state) || isTerminal(state))) {
    const payment = paid === undefined ? undefined : { id: paid.id, held: paid.held }
    return { kind: 'continue', message: said, signed, payment }
  }
  throw new ParleyError('UnsupportedOperation', {
    message: `Task is ${state}: wait until it asks for input or has ended`,
    data: { taskId: task.id, state },
  })
}

/** Data `{accept: true}` continues, `{accept: false}` ends in `rejected` (spec/tasks.md#bids). */
function answerToBid(task: TaskRecord, said: Message, signed: boolean): Change {
  const accept = dataOf(said.parts as Part[])['accept']
  if (accept === true) return { kind: 'continue', message: said, signed }
  if (accept === false)
    return { kind: 'reject', message: ourText(task, 'The caller did not accept the bid.') }
  const issues = [
    {
      path: 'message.parts',
      message: 'a bid is answered with a data part {"accept": true} or {"accept": false}',
    },
  ]
  throw new ParleyError('InvalidParams', { data: { taskId: task.id, issues } })
}
