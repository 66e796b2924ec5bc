import { randomUUID } from 'node:crypto'
import type { TaskState } from '@parley/wire/model/task'
import { keyedIn, keyOfDocument, type MongoContext, type TaskDocument } from './record.ts'

/** The fields of a task that a removal needs. */
export type Leaving = Pick<TaskDocument, 'task_id' | 'owner' | 'context_id' | 'state' | 'position'>
export const ofRemoval = { task_id: 1, owner: 1, context_id: 1, state: 1, position: 1 }

/** Tasks whose removal has begun. After a crash, another process completes the removal. */
export interface RemovalDocument {
  _id: string
  agent_id: string
  /** Milliseconds since 1970. */
  at: number
  tasks: { task_id: string; key: string; owner: string; context_id: string }[]
}

export interface CountsDocument {
  _id: string
  agent_id: string
  counts: Partial<Record<TaskState, number>>
}

const besideTasks = {
  parts: 'task',
  feedback: 'task',
  idempotency_keys: 'task_id',
  push_configs: 'task',
} as const

/**
 * Removes ended tasks, then the documents that belong to them. The process that removes a task counts it; if it
 * crashes immediately afterwards, the counts of one batch are lost.
 */
export async function removeTasks(store: MongoContext, ended: Leaving[]): Promise<number> {
  const { agentId, tasks, beside, now } = store
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
    const ids = some.map(({ task_id }) => keyedIn(store, task_id))
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
  await removeBelongings(store, removal)
  return removed
}

export async function removeBelongings(
  { agentId, beside }: MongoContext,
  removal: RemovalDocument,
): Promise<void> {
  const keys = {
    task: removal.tasks.map(({ key }) => key),
    task_id: removal.tasks.map(({ task_id }) => task_id),
  }
  for (const [name, field] of Object.entries(besideTasks)) {
    await beside(name).deleteMany({ agent_id: agentId, [field]: { $in: keys[field] } } as never)
  }
  await beside('removals').deleteOne({ _id: removal._id, agent_id: agentId } as never)
}

/** Returns the number of removed tasks by the state in which they ended. */
export async function removedCounts({
  agentId,
  beside,
}: MongoContext): Promise<Partial<Record<TaskState, number>>> {
  const found = await beside<CountsDocument>('counts').findOne({
    _id: `${agentId}/removed`,
    agent_id: agentId,
  })
  return found?.counts ?? {}
}
