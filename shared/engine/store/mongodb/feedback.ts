import { hashOf } from '@parley/kit/database/keys'
import { insertUnlessThere } from '@parley/kit/database/mongodb/database'
import { documentBound, refuseTooLarge } from '@parley/kit/database/mongodb/layout'
import { untilDone } from '@parley/kit/database/retry'
import type { Feedback } from '../store.ts'
import { idIn, keyOfDocument, type MongoContext, type TaskDocument } from './record.ts'

export interface FeedbackDocument {
  _id: string
  agent_id: string
  /** The `taskKey` of the rated task. */
  task: string
  body: string
}

/** Writes the feedback, then looks the task up again, so that a concurrent removal leaves no feedback behind. */
export async function saveFeedback(store: MongoContext, feedback: Feedback): Promise<void> {
  const { agentId, beside } = store
  const task = await keyOfTask(store, feedback.taskId)
  if (task === undefined) return
  const body = JSON.stringify(feedback)
  refuseTooLarge(body, documentBound)
  const _id = `${agentId}/${hashOf(task, feedback.owner)}`
  const all = beside<FeedbackDocument>('feedback')
  await untilDone(async () => {
    const { matchedCount } = await all.updateOne({ _id, agent_id: agentId }, { $set: { body } })
    if (matchedCount === 1) return true
    return (await insertUnlessThere(all, { _id, agent_id: agentId, task, body })) || undefined
  })
  if ((await keyOfTask(store, feedback.taskId)) !== task) await all.deleteOne({ _id, agent_id: agentId })
}

export async function findFeedback(
  store: MongoContext,
  taskId: string,
  owner: string,
): Promise<Feedback | undefined> {
  const { agentId, beside } = store
  const task = await keyOfTask(store, taskId)
  if (task === undefined) return undefined
  const _id = `${agentId}/${hashOf(task, owner)}`
  const found = await beside<FeedbackDocument>('feedback').findOne({ _id, agent_id: agentId })
  return found === null ? undefined : JSON.parse(found.body)
}

async function keyOfTask(store: MongoContext, id: string): Promise<string | undefined> {
  const { tasks, agentId } = store
  const projection = { _id: 0, task_id: 1, owner: 1, position: 1 }
  const found = await tasks.findOne<Pick<TaskDocument, 'task_id' | 'owner' | 'position'>>(
    { _id: idIn(store, id), agent_id: agentId },
    { projection },
  )
  return found === null ? undefined : keyOfDocument(found)
}
