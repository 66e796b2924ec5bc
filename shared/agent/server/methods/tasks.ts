import type { Feedback, TaskQuery, TaskRecord } from '@parley/engine/store/store'
import { ownsFor } from '@parley/kit/auth/caller'
import { newId } from '@parley/kit/database/new-id'
import { ParleyError } from '@parley/wire/errors'
import { keyOfTask } from '@parley/wire/model/chosen-task-id'
import type { Task } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import type { Call, Run, Services } from './method.ts'
import { canceledRecord } from './new-record.ts'

/** @throws ParleyError TaskNotFound, even for a task of another owner */
export async function requireTask({ store }: Services, call: Call, taskId: string): Promise<TaskRecord> {
  const task = await store.findTask(taskId, call.caller.id, call.reserve)
  if (task === undefined) throw notFound(taskId)
  return task
}

/** Returns the task without its large parts, which are read while the answer is sent. @throws as `requireTask` */
export async function requireOutline({ store }: Services, call: Call, taskId: string): Promise<TaskRecord> {
  const outline = await store.outlineTask(taskId, call.caller.id, call.reserve)
  if (outline === undefined) throw notFound(taskId)
  return outline.task
}

/**
 * Like `requireOutline`, and also returns a task that an agent created for this caller (spec/delegation.md#ownership).
 * @throws as `requireTask`
 */
export async function requireDelegatedOutline(
  services: Services,
  call: Call,
  taskId: string,
): Promise<TaskRecord> {
  const { store } = services
  const own = await store.outlineTask(taskId, call.caller.id, call.reserve)
  if (own !== undefined) return own.task
  const owner = await requireDelegatedOwner(services, call, taskId)
  const delegated = await store.outlineTask(taskId, owner, call.reserve)
  if (delegated === undefined) throw notFound(taskId)
  return delegated.task
}

async function requireDelegatedTask(services: Services, call: Call, taskId: string): Promise<TaskRecord> {
  const { store } = services
  const own = await store.findTask(taskId, call.caller.id, call.reserve)
  if (own !== undefined) return own
  const owner = await requireDelegatedOwner(services, call, taskId)
  const delegated = await store.findTask(taskId, owner, call.reserve)
  if (delegated === undefined) throw notFound(taskId)
  return delegated
}

async function requireDelegatedOwner({ store }: Services, { caller }: Call, taskId: string): Promise<string> {
  const owner = await store.ownerOf(taskId)
  if (owner === undefined || !ownsFor(caller, owner)) throw notFound(taskId)
  return owner
}

const notFound = (taskId: string) => new ParleyError('TaskNotFound', { data: { taskId } })

/** Returns the task with only its newest messages if the caller limits their number. */
export function withHistory<T extends Task>(task: T, historyLength: number | undefined): T {
  if (historyLength === undefined || historyLength >= task.history.length) return task
  return { ...task, history: task.history.slice(task.history.length - historyLength) }
}

export const getTask: Run<'getTask'> = async (services, call) => {
  const { taskId, historyLength } = call.params()
  return { result: withHistory(await requireDelegatedOutline(services, call, taskId), historyLength) }
}

export const listTasks: Run<'listTasks'> = async ({ store }, call) => {
  const params = call.params()
  const { historyLength, limit, cursor, contextId, states, statusSince, includeArtifacts, count } = params
  // The store finds tasks by the time of their status in that order only.
  const order = statusSince === undefined ? params.order : 'status'
  const query: TaskQuery = {
    owner: call.caller.id,
    limit,
    ...(cursor === undefined ? {} : { cursor }),
    ...(contextId === undefined ? {} : { contextId }),
    ...(states === undefined ? {} : { states }),
    ...(order === undefined ? {} : { order }),
    ...(statusSince === undefined ? {} : { statusSince }),
    ...(includeArtifacts === undefined ? {} : { includeArtifacts }),
    ...(count === undefined ? {} : { count }),
  }
  const page = await store.outlineTasks(query, call.reserve)
  // The gateway relies on the order when it merges the lists of several agents.
  const items = page.items.map(({ task }) => withHistory(task, historyLength))
  return { result: { ...page, items, limit } }
}

export const cancelTask: Run<'cancelTask'> = async (services, call) => {
  const { taskId } = call.params()
  const task = await requireDelegatedTask(services, call, taskId).catch((error: unknown) => {
    if (isMissing(error) && keyOfTask(call.headers['idempotency-key'], taskId) !== undefined) return undefined
    throw error
  })
  await call.takeSignature()
  const canceled = task === undefined ? await createCanceled(services, call, taskId) : undefined
  if (canceled !== undefined) return { result: canceled }
  // The message has created the task in the meantime.
  const from = task ?? (await requireDelegatedTask(services, call, taskId))
  return { result: await services.engine.change(from, () => ({ kind: 'cancel' })) }
}

const isMissing = (error: unknown) => error instanceof ParleyError && error.error === 'TaskNotFound'

/**
 * Stores a canceled task in place of a task whose message has not arrived yet, so that the message is refused.
 * @returns undefined if the id is taken
 */
async function createCanceled(
  { engine }: Services,
  call: Call,
  taskId: string,
): Promise<TaskRecord | undefined> {
  const record = canceledRecord({ id: taskId, contextId: newId(), owner: call.caller.id })
  return (await engine.create(record)) ? record : undefined
}

/** Does not change the task. The same caller's second call replaces the first (spec/methods.md#tasksfeedback). */
export const giveFeedback: Run<'giveFeedback'> = async (services, call) => {
  const { taskId, feedback, rating, metadata } = call.params()
  const task = await requireTask(services, call, taskId)
  if (task.status.state !== 'completed') {
    throw new ParleyError('UnsupportedOperation', {
      message: 'Only a completed task can be rated',
      data: { taskId, state: task.status.state },
    })
  }
  const given: Feedback = { taskId, owner: call.caller.id, feedback, at: timestamp() }
  if (rating !== undefined) given.rating = rating
  if (metadata !== undefined) given.metadata = metadata
  await call.takeSignature()
  await services.store.saveFeedback(given)
  if (rating !== undefined) services.figures.recordRating(taskId, rating)
  return { result: { taskId } }
}
