import { removeContextIfEmpty } from './contexts.ts'
import { type Inside, keyedIn } from './record.ts'
import { type Leaving, ofRemoval, type RemovalDocument, removeBelongings, removeTasks } from './removal.ts'

/** A removal that began so long ago is somebody's who died. */
const unfinishedAfterMs = 60_000

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
