import { dataOf } from '../handler/build-context.ts'
import { ParleyError } from '../jsonrpc/errors.ts'
import type { MessageSend } from '../protocol/params.ts'
import { isPaused, isTerminal, type Message, type Part } from '../protocol/task.ts'
import type { TaskRecord } from '../store/store.ts'
import { ourText } from '../tasks/our-message.ts'
import type { Change } from '../tasks/transitions.ts'
import type { Registration } from '../webhooks/registrations.ts'
import { claimRoom } from './claim-room.ts'
import type { InlineWebhook } from './inline-webhook.ts'
import type { Call, Services } from './method.ts'
import { type Accepted, messageOf } from './new-record.ts'

/**
 * A message to a task that exists: it continues a paused one (back to `submitted`, no event). Any other state refuses.
 * @throws ParleyError TaskImmutable, UnsupportedOperation, InvalidParams (another context; a bid answered without `accept`)
 */
export async function continueTask(
  services: Services,
  { caller, takeSignature }: Pick<Call, 'caller' | 'takeSignature'>,
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
  const makeChange = (now: TaskRecord) => answerTo(now, said, caller.signature !== undefined)
  // Refused before room is asked for: an ended task is that, however long the line.
  makeChange(task)
  const slot = claimRoom(services)
  let registration: Registration | undefined
  try {
    await takeSignature()
    registration = await webhook?.register(task, false)
    const record = await services.engine.change(task, makeChange)
    const start = () => {
      if (record.status.state === 'submitted')
        services.scheduler.enqueue({ taskId: task.id, version: record.version, owner: task.owner }, slot)
      else slot.release()
    }
    return { record, start }
  } catch (error) {
    slot.release()
    await registration?.undo()
    throw error
  }
}

function answerTo(task: TaskRecord, said: Message, signed: boolean): Change {
  const { state } = task.status
  if (state === 'negotiation-bid-submitted') return answerToBid(task, said, signed)
  if (isPaused(state) || isTerminal(state)) return { kind: 'continue', message: said, signed }
  throw new ParleyError('UnsupportedOperation', {
    message: `Task is ${state}: wait until it asks for input or has ended`,
    data: { taskId: task.id, state },
  })
}

/** Design gaps: data `{accept: true}` continues, `{accept: false}` ends in `rejected`. */
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
