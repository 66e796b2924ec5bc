import { randomUUID } from 'node:crypto'
import type { TaskState } from '../protocol/task.ts'
import { removeContextIfEmpty } from './mongodb-contexts.ts'
import { type Inside, keyedIn, keyOfDocument, type TaskDocument } from './mongodb-record.ts'

/** What a removal has to know of a task. */
export type Leaving = Pick<TaskDocument, 'task_id' | 'owner' | 'context_id' | 'state' | 'position'>
export const ofRemoval = { task_id: 1, owner: 1, context_id: 1, state: 1, position: 1 }

/** Tasks that are being removed, until nothing that belongs to them is left: a crash in between is made up for later. */
interface RemovalDocument {
  _id: string
  agent_id: string
  /** Milliseconds since 1970. */
  at: number
  tasks: { task_id: string; key: string; owner: string; context_id: string }[]
}

interface CountsDocument {
  _id: string
  agent_id: string
  counts: Partial<Record<TaskState, number>>
}

/** A removal that began so long ago is somebody's who died. */
const unfinishedAfterMs = 60_000

const besideTasks = {
  parts: 'task',
  feedback: 'task',
  idempotency_keys: 'task_id',
  push_configs: 'task',
} as const

/**
 * Removes ended tasks, then all that belongs to them. Each is counted by who removed it; a crash right after that forgets
 * the counts of one batch, and nothing else.
 */
export async function removeTasks(inside: Inside, ended: Leaving[]): Promise<number> {
  const { agentId, tasks, beside, now } = inside
  const removals = beside<RemovalDocument>('removals')
  const removal: RemovalDocument = {
    _id: `${agentId}/${randomUUID()}`,
    agent_id: agentId,
    at: now(),
    tasks: ended.map((task) => ({
      task_id: task.task_id,
      key: keyOfDocument(task),
      owner: task.owner,
      context_id: task.context_id,
    })),
  }
  await removals.insertOne(removal)
  let removed = 0
  const counts: [string, number][] = []
  for (const [state, some] of Object.entries(Object.groupBy(ended, (task) => task.state))) {
    const ids = some.map(({ task_id }) => keyedIn(inside, task_id))
    const filter = { _id: { $in: ids }, agent_id: agentId, state: state as TaskState }
    const { deletedCount } = await tasks.deleteMany(filter)
    counts.push([`counts.${state}`, deletedCount])
    removed += deletedCount
  }
  const sum = { _id: `${agentId}/removed`, agent_id: agentId }
  if (removed > 0) {
    await beside<CountsDocument>('counts').updateOne(
      sum,
      { $inc: Object.fromEntries(counts) },
      { upsert: true },
    )
  }
  await removeBelongings(inside, removal)
  return removed
}

async function removeBelongings({ agentId, beside }: Inside, removal: RemovalDocument): Promise<void> {
  const keys = {
    task: removal.tasks.map(({ key }) => key),
    task_id: removal.tasks.map(({ task_id }) => task_id),
  }
  for (const [name, field] of Object.entries(besideTasks)) {
    await beside(name).deleteMany({ agent_id: agentId, [field]: { $in: keys[field] } } as never)
  }
  await beside('removals').deleteOne({ _id: removal._id, agent_id: agentId } as never)
}

/** How many tasks were removed, by the state in which they had ended. */
export async function removedCounts({
  agentId,
  beside,
}: Inside): Promise<Partial<Record<TaskState, number>>> {
  const found = await beside<CountsDocument>('counts').findOne({
    _id: `${agentId}/removed`,
    agent_id: agentId,
  })
  return found?.counts ?? {}
}

export async function removeEnded(inside: Inside, before: string, limit: number): Promise<number> {
  const { agentId, tasks } = inside
  await removeExpiredKeys(inside, limit)
  await finishRemovals(inside, limit)
  const ended = await tasks
    .find({ agent_id: agentId, ended_at: { $exists: true, $lt: before } })
    .sort({ ended_at: 1 })
    .limit(limit)
    .project<Leaving>(ofRemoval)
    .toArray()
  if (ended.length === 0) return 0
  const removed = await removeTasks(inside, ended)
  const contexts = new Map(ended.map(({ context_id, owner }) => [context_id, owner]))
  for (const [contextId, owner] of contexts) await removeContextIfEmpty(inside, contextId, owner)
  return removed
}

async function removeExpiredKeys({ agentId, beside, now }: Inside, limit: number): Promise<void> {
  const keys = beside<{ _id: string; agent_id: string; expires_at: number }>('idempotency_keys')
  const expired = { agent_id: agentId, expires_at: { $lte: now() } }
  const found = await keys.find(expired).limit(limit).project<{ _id: string }>({ _id: 1 }).toArray()
  if (found.length === 0) return
  await keys.deleteMany({ _id: { $in: found.map(({ _id }) => _id) }, ...expired })
}

/** What somebody began and did not end, without the ids that were given to a new task since. */
async function finishRemovals(inside: Inside, limit: number): Promise<void> {
  const { agentId, beside, tasks, now } = inside
  const left = await beside<RemovalDocument>('removals')
    .find({ agent_id: agentId, at: { $lt: now() - unfinishedAfterMs } })
    .limit(limit)
    .toArray()
  for (const removal of left) {
    const ids = removal.tasks.map(({ task_id }) => keyedIn(inside, task_id))
    const there = await tasks
      .find({ _id: { $in: ids }, agent_id: agentId })
      .project<Leaving>(ofRemoval)
      .toArray()
    const known = new Set(there.map(({ task_id }) => task_id))
    const gone = removal.tasks.filter(({ task_id }) => !known.has(task_id))
    await removeBelongings(inside, { ...removal, tasks: gone })
    for (const { context_id, owner } of gone) await removeContextIfEmpty(inside, context_id, owner)
  }
}
