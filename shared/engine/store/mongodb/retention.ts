import { terminalStates } from '@parley/wire/model/task'
import { removeContextIfEmpty } from './contexts.ts'
import { keyedIn, type MongoContext } from './record.ts'
import { type Leaving, ofRemoval, type RemovalDocument, removeBelongings, removeTasks } from './removal.ts'

/** Age of an unfinished removal after which its process is considered dead. */
const unfinishedAfterMs = 60_000

export async function removeEnded(store: MongoContext, before: string, limit: number): Promise<number> {
  const { agentId, tasks } = store
  await finishRemovals(store, limit)
  const ended = await tasks
    .find({
      agent_id: agentId,
      state: { $in: [...terminalStates] },
      // A task changes last when it gets its final status, or later.
      status_position: { $lt: before },
      ended_at: { $exists: true, $lt: before },
    })
    .sort({ status_position: 1 })
    .limit(limit)
    .project<Leaving>(ofRemoval)
    .toArray()
  if (ended.length === 0) return 0
  const removed = await removeTasks(store, ended)
  const contexts = new Map(ended.map(({ context_id, owner }) => [context_id, owner]))
  for (const [contextId, owner] of contexts) await removeContextIfEmpty(store, contextId, owner)
  return removed
}

/** Completes removals begun by dead processes, except for ids that a new task uses. */
async function finishRemovals(store: MongoContext, limit: number): Promise<void> {
  const { agentId, beside, tasks, now } = store
  const left = await beside<RemovalDocument>('removals')
    .find({ agent_id: agentId, at: { $lt: now() - unfinishedAfterMs } })
    .limit(limit)
    .toArray()
  for (const removal of left) {
    const ids = removal.tasks.map(({ task_id }) => keyedIn(store, task_id))
    const there = await tasks
      .find({ _id: { $in: ids }, agent_id: agentId })
      .project<Leaving>(ofRemoval)
      .toArray()
    const known = new Set(there.map(({ task_id }) => task_id))
    const gone = removal.tasks.filter(({ task_id }) => !known.has(task_id))
    await removeBelongings(store, { ...removal, tasks: gone })
    for (const { context_id, owner } of gone) await removeContextIfEmpty(store, context_id, owner)
  }
}
