import type { Slot } from '@parley/engine/queue/scheduler'
import type { TaskRecord } from '@parley/engine/store/store'
import type { Registration } from '@parley/engine/webhooks/registrations'
import type { MessageSend } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { isPaused } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import { claimRoom } from './claim-room.ts'
import { continueTask } from './continue-task.ts'
import { claimKey } from './idempotency.ts'
import { type InlineWebhook, inlineWebhook } from './inline-webhook.ts'
import { mayBeStored } from './may-be-stored.ts'
import type { Call, Services } from './method.ts'
import { newId } from './new-id.ts'
import { type Accepted, type NewTask, newRecord } from './new-record.ts'
import { requireCommonMode } from './output-modes.ts'
import { isBeingPaid, type Paid, payForTask, taskOfSameRequest } from './pay-first.ts'
import { readReferences } from './references.ts'

/**
 * Everything between the params of `message/send` or `message/stream` and a durable task (spec/methods.md#messagesend):
 * a new task, or the continuation of a paused one.
 */
export async function acceptMessage(services: Services, call: Call, params: MessageSend): Promise<Accepted> {
  const { message, configuration } = params
  const acceptedOutputModes = configuration?.acceptedOutputModes ?? []
  requireCommonMode(
    acceptedOutputModes,
    services.agent.skills.flatMap((skill) => skill.outputModes),
  )
  const webhook = await inlineWebhook(services, configuration)
  const owner = call.caller.id
  const key = await claimKey(services.store, call, message.taskId)
  const taskId = key?.taskId ?? message.taskId
  const existing =
    taskId === undefined ? undefined : await services.store.findTask(taskId, owner, call.reserve)
  if (existing !== undefined && key !== undefined && isRepeat(existing, message.messageId, key.seen))
    return repeated(call, existing)
  // After that: a message that was taken stays taken, whatever became of what it refers to.
  const foreign = await readReferences(services, call, message.referenceTaskIds ?? [])
  if (existing !== undefined) return continueTask(services, call, existing, { message, webhook })
  const wanted = { ...params, taskId: taskId ?? newId(), acceptedOutputModes, webhook, foreign }
  const created = await createTask(services, call, wanted).catch(async (error: unknown) => {
    if (key === undefined || !isBeingPaid(error)) throw error
    const same = await taskOfSameRequest(services, wanted.taskId, owner)
    if (same === undefined) throw error
    return repeated(call, same)
  })
  if (created !== undefined) return created
  // The id was taken meanwhile: by the same request at the same time (then that task is the answer), or by another one.
  const taken = await services.store.findTask(wanted.taskId, owner, call.reserve)
  if (taken === undefined) throw new ParleyError('TaskNotFound', { data: { taskId: wanted.taskId } })
  if (key !== undefined && wasTaken(taken, message.messageId)) return repeated(call, taken)
  return continueTask(services, call, taken, { message, webhook })
}

/** Undefined when the id is taken. */
async function createTask(
  services: Services,
  call: Call,
  wanted: NewTask & { webhook: InlineWebhook | undefined },
): Promise<Accepted | undefined> {
  const owner = call.caller.id
  const at = timestamp()
  const contextId = wanted.message.contextId ?? newId()
  const firstOfContext = !(await isOurContext(services, wanted.message.contextId, owner))
  const paid = await payForTask(services, call, wanted)
  const record = newRecord({ owner, signed: call.caller.signature !== undefined, at, contextId, wanted })
  if (paid !== undefined) return createPaid(services, call, { record, paid, webhook: wanted.webhook })
  const slot = await claimRoom(services, owner)
  if (slot.runs) Object.assign(record, { lease: services.runner.lease(), starts: 1 })
  if (!(await create(services, record, { call, slot, webhook: wanted.webhook }))) return undefined
  return {
    record,
    start: () => {
      services.runner.remember(record, firstOfContext)
      services.scheduler.enqueue({ taskId: record.id, version: record.version, owner }, slot)
    },
  }
}

/**
 * One that is refused after all leaves its payment as it was: settled, and good for another task of its owner. Where the
 * task may be there in spite of it, the payment stays with it: the same request finds it, or takes it up.
 */
async function createPaid(
  services: Services,
  call: Call,
  { record, paid, webhook }: { record: TaskRecord; paid: Paid; webhook: InlineWebhook | undefined },
): Promise<Accepted | undefined> {
  const { id, held, headers } = paid
  record.payments = [id]
  if (held) record.heldBy = id
  let isItsOwn = false
  try {
    const slot = await claimRoom(services, record.owner)
    const created = await create(services, record, { call, slot, webhook }).catch((error: unknown) => {
      isItsOwn = mayBeStored(services, error)
      throw error
    })
    // The same request at another process may have made it of the same payment.
    isItsOwn = created || (await services.store.loadTask(record.id))?.payments?.includes(id) === true
    if (!created) return undefined
    if (held) {
      slot.release()
      return { record, start: () => void paid.bound(), headers }
    }
    const { version, owner } = record
    return {
      record,
      headers,
      start: () => services.scheduler.enqueue({ taskId: record.id, version, owner }, slot),
    }
  } finally {
    if (!isItsOwn) await paid.giveBack()
  }
}

/** The webhook is in force before the task is there: no event of it is missed. */
async function create(
  services: Services,
  record: TaskRecord,
  { call, slot, webhook }: { call: Call; slot: Slot; webhook: InlineWebhook | undefined },
): Promise<boolean> {
  let created = false
  let registration: Registration | undefined
  try {
    await call.takeSignature()
    registration = await webhook?.register(record, true)
    created = await services.engine.create(record)
    return created
  } catch (error) {
    // It may have been stored: the same request again finds it, and its webhook. One without its task goes by itself.
    if (mayBeStored(services, error)) registration = undefined
    throw error
  } finally {
    if (!created) {
      slot.release()
      await registration?.undo()
    }
  }
}

/** The same request again, by its Idempotency-Key. */
async function repeated(call: Call, record: TaskRecord): Promise<Accepted> {
  await call.takeSignature()
  return { record, start: () => {} }
}

const wasTaken = (record: TaskRecord, messageId: string) =>
  record.history.some((said) => said.messageId === messageId)

/**
 * The same request may come twice at the same time: who claimed the key first may find the task that the other one made. To
 * a paused task a message with a key of its own is an answer.
 */
const isRepeat = (record: TaskRecord, messageId: string, seen: boolean) =>
  wasTaken(record, messageId) && (seen || !isPaused(record.status.state))

/** A context that is not there is made with its first task; one of another owner is refused there. */
async function isOurContext(
  services: Services,
  contextId: string | undefined,
  owner: string,
): Promise<boolean> {
  return contextId !== undefined && (await services.store.findContext(contextId, owner)) !== undefined
}
