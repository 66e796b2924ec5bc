import { ParleyError } from '../jsonrpc/errors.ts'
import type { MessageSend } from '../protocol/params.ts'
import { timestamp } from '../protocol/timestamp.ts'
import type { Slot } from '../scheduler/scheduler.ts'
import type { TaskRecord } from '../store/store.ts'
import { leaseOf } from '../tasks/leases.ts'
import { continueTask } from './continue-task.ts'
import { claimKey } from './idempotency.ts'
import type { Call, Services } from './method.ts'
import { newId } from './new-id.ts'
import { type Accepted, type NewTask, newRecord } from './new-record.ts'
import { requireCommonMode } from './output-modes.ts'
import { requireReferences } from './references.ts'

/**
 * Everything between the params of `message/send` or `message/stream` and a durable task (design gaps, "message/send"):
 * a new task, or the continuation of a paused one.
 */
export async function acceptMessage(services: Services, call: Call, params: MessageSend): Promise<Accepted> {
  const { message, configuration } = params
  const acceptedOutputModes = configuration?.acceptedOutputModes ?? []
  requireCommonMode(
    acceptedOutputModes,
    services.agent.skills.flatMap((skill) => skill.outputModes),
  )
  if (configuration?.pushNotificationConfig !== undefined)
    throw new ParleyError('PushNotificationNotSupported')
  const owner = call.caller.id
  await requireReferences(services.store, owner, message.referenceTaskIds ?? [])
  const key = await claimKey(services.store, call, message.taskId)
  const taskId = key?.taskId ?? message.taskId
  const existing = taskId === undefined ? undefined : await services.store.findTask(taskId, owner)
  if (existing !== undefined) {
    if (key?.seen === true && wasTaken(existing, message.messageId))
      return { record: existing, start: () => {} }
    return continueTask(services, existing, message)
  }
  return createTask(services, call, { ...params, taskId: taskId ?? newId(), acceptedOutputModes })
}

async function createTask(services: Services, call: Call, wanted: NewTask): Promise<Accepted> {
  requireRoom(services)
  const owner = call.caller.id
  const at = timestamp()
  const contextId = wanted.message.contextId ?? newId()
  const firstOfContext = !(await isOurContext(services, wanted.message.contextId, owner))
  const slot = services.scheduler.claimSlot()
  const record = newRecord({ owner, at, contextId, wanted })
  if (slot !== undefined) Object.assign(record, { lease: leaseOf(services.runner.holder), starts: 1 })
  const created = await create(services, record, slot)
  if (!created) {
    slot?.release()
    return takenMeanwhile(services, record)
  }
  return {
    record,
    start: () => {
      services.runner.remember(record, firstOfContext)
      services.scheduler.enqueue({ taskId: record.id, owner }, slot)
    },
  }
}

async function create(services: Services, record: TaskRecord, slot: Slot | undefined): Promise<boolean> {
  try {
    return await services.engine.create(record)
  } catch (error) {
    slot?.release()
    throw error
  }
}

/** The id is taken: by the same request at the same time (then that task is the answer) or by another owner. */
async function takenMeanwhile(services: Services, wanted: TaskRecord): Promise<Accepted> {
  const existing = await services.store.findTask(wanted.id, wanted.owner)
  if (existing === undefined) throw new ParleyError('TaskNotFound', { data: { taskId: wanted.id } })
  if (wasTaken(existing, wanted.history[0]?.messageId ?? '')) return { record: existing, start: () => {} }
  throw new ParleyError('UnsupportedOperation', {
    message: `Task is ${existing.status.state}: wait until it asks for input or has ended`,
    data: { taskId: wanted.id, state: existing.status.state },
  })
}

const wasTaken = (record: TaskRecord, messageId: string) =>
  record.history.some((said) => said.messageId === messageId)

function requireRoom({ scheduler, taskQueueMax }: Services): void {
  if (scheduler.waiting < taskQueueMax) return
  throw new ParleyError('Unavailable', {
    message: 'Too many tasks are waiting',
    data: { reason: 'queue_full' },
    headers: { 'retry-after': '5' },
  })
}

/** A context that is not there is made with its first task; one of another owner is refused there. */
async function isOurContext(
  services: Services,
  contextId: string | undefined,
  owner: string,
): Promise<boolean> {
  return contextId !== undefined && (await services.store.findContext(contextId, owner)) !== undefined
}
