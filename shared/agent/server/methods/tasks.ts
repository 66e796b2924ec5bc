import type { Feedback, TaskRecord } from '@parley/engine/store/store'
import { parseParams, taskCancel, taskGet, tasksFeedback, tasksList } from '@parley/wire/codecs/parley/params'
import { taskOut } from '@parley/wire/codecs/parley/wire-out'
import { ParleyError } from '@parley/wire/errors'
import { timestamp } from '@parley/wire/model/timestamp'
import type { Answer, Call, Services } from './method.ts'

/** @throws ParleyError TaskNotFound, the same for a task that is not there and one of another owner */
export async function requireTask({ store }: Services, call: Call, taskId: string): Promise<TaskRecord> {
  const task = await store.findTask(taskId, call.caller.id, call.reserve)
  if (task === undefined) throw new ParleyError('TaskNotFound', { data: { taskId } })
  return task
}

/** For an answer alone: large parts are still in the store. @throws ParleyError as `requireTask` */
export async function requireOutline({ store }: Services, call: Call, taskId: string): Promise<TaskRecord> {
  const outline = await store.outlineTask(taskId, call.caller.id, call.reserve)
  if (outline === undefined) throw new ParleyError('TaskNotFound', { data: { taskId } })
  return outline.task
}

export async function getTask(services: Services, call: Call): Promise<Answer> {
  const { taskId, historyLength } = parseParams(taskGet, call.params)
  return { result: taskOut(await requireOutline(services, call, taskId), historyLength) }
}

export async function listTasks({ store }: Services, call: Call): Promise<Answer> {
  const { historyLength, limit, cursor, contextId, state } = parseParams(tasksList, call.params)
  const query = {
    owner: call.caller.id,
    limit,
    ...(cursor === undefined ? {} : { cursor }),
    ...(contextId === undefined ? {} : { contextId }),
    ...(state === undefined ? {} : { state }),
  }
  const page = await store.outlineTasks(query, call.reserve)
  // The list is in the order of creation: merging the lists of several agents requires it.
  const result = page.items.map(({ task }) => ({
    ...taskOut(task, historyLength),
    created_at: task.createdAt,
  }))
  return { result, headers: nextCursor(page) }
}

/** The next page's cursor travels in a header, because the result is an array (spec/methods.md#taskslist). */
export function nextCursor(page: { nextCursor?: string }): Record<string, string> {
  return page.nextCursor === undefined ? {} : { 'x-next-cursor': page.nextCursor }
}

export async function cancelTask(services: Services, call: Call): Promise<Answer> {
  const { taskId } = parseParams(taskCancel, call.params)
  const task = await requireTask(services, call, taskId)
  await call.takeSignature()
  return { result: taskOut(await services.engine.change(task, () => ({ kind: 'cancel' }))) }
}

/** Does not change the task; a second call of the same caller replaces the first (spec/methods.md#tasksfeedback). */
export async function giveFeedback(services: Services, call: Call): Promise<Answer> {
  const { taskId, feedback, rating, metadata } = parseParams(tasksFeedback, call.params)
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
  if (rating !== undefined) services.figures.rated(taskId, rating)
  return { result: { success: true, task_id: taskId, message: 'Feedback was recorded' } }
}
