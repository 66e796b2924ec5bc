import { insertUnlessThere, untilDone } from '@parley/kit/database/mongodb/database'
import { hashOf, keyText } from '@parley/kit/database/mongodb/keys'
import type { Feedback, IdempotencyRecord } from '../store.ts'
import {
  documentBound,
  type Inside,
  idIn,
  keyOfDocument,
  refuseTooLarge,
  type TaskDocument,
} from './record.ts'

export interface KeyDocument {
  _id: string
  agent_id: string
  task_id: string
  expires_at: number
  /** The whole record as JSON. */
  body: string
}

export interface FeedbackDocument {
  _id: string
  agent_id: string
  /** `taskKey` of its task. */
  task: string
  body: string
}

/** The insert decides who is first; an expired one is replaced by the one who still finds it as it was. */
export function claimIdempotencyKey(
  { agentId, beside, now }: Inside,
  record: IdempotencyRecord,
): Promise<IdempotencyRecord | undefined> {
  const keys = beside<KeyDocument>('idempotency_keys')
  const document = keyDocument(agentId, record)
  const { _id } = document
  return untilDone(async () => {
    if (await insertUnlessThere(keys, document)) return { was: undefined }
    const there = await keys.findOne({ _id, agent_id: agentId })
    if (there === null) return undefined
    if (there.expires_at > now()) return { was: JSON.parse(there.body) as IdempotencyRecord }
    const expired = { _id, agent_id: agentId, expires_at: there.expires_at, body: there.body }
    const replaced = await keys.replaceOne(expired, document)
    return replaced.matchedCount === 1 ? { was: undefined } : undefined
  }).then(({ was }) => was)
}

export function keyDocument(agentId: string, record: IdempotencyRecord): KeyDocument {
  return {
    _id: `${agentId}/${hashOf(record.owner, record.key)}`,
    agent_id: agentId,
    task_id: keyText(record.taskId),
    expires_at: record.expiresAt,
    body: JSON.stringify(record),
  }
}

/** Written first, then the task is looked for once more: of a removal at the same time nothing is left. */
export async function saveFeedback(inside: Inside, feedback: Feedback): Promise<void> {
  const { agentId, beside } = inside
  const task = await keyOfTask(inside, feedback.taskId)
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
  if ((await keyOfTask(inside, feedback.taskId)) !== task) await all.deleteOne({ _id, agent_id: agentId })
}

export async function findFeedback(
  inside: Inside,
  taskId: string,
  owner: string,
): Promise<Feedback | undefined> {
  const { agentId, beside } = inside
  const task = await keyOfTask(inside, taskId)
  if (task === undefined) return undefined
  const _id = `${agentId}/${hashOf(task, owner)}`
  const found = await beside<FeedbackDocument>('feedback').findOne({ _id, agent_id: agentId })
  return found === null ? undefined : (JSON.parse(found.body) as Feedback)
}

async function keyOfTask(inside: Inside, id: string): Promise<string | undefined> {
  const { tasks, agentId } = inside
  const projection = { _id: 0, task_id: 1, owner: 1, position: 1 }
  const found = await tasks.findOne<Pick<TaskDocument, 'task_id' | 'owner' | 'position'>>(
    { _id: idIn(inside, id), agent_id: agentId },
    { projection },
  )
  return found === null ? undefined : keyOfDocument(found)
}
