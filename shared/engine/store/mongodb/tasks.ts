import { keyText } from '@parley/kit/database/keys'
import { unlessConflict } from '@parley/kit/database/mongodb/database'
import { untilDone } from '@parley/kit/database/retry'
import { ParleyError } from '@parley/wire/errors'
import { pausedStates, type TaskState, taskStates, terminalStates } from '@parley/wire/model/task'
import type {
  Admit,
  Dueness,
  GeneratedIds,
  TaskOutline,
  TaskRecord,
  Unfinishedness,
  UnfinishedTask,
} from '../store.ts'
import { taskKey } from '../webhook-store.ts'
import { isLastChange } from './batches.ts'
import { joinContext, restoreContexts } from './contexts.ts'
import {
  boundOf,
  bytesOf,
  decodeTask,
  encodeTask,
  idIn,
  type MongoContext,
  messageBound,
  outlineOf,
  saveParts,
  type TaskDocument,
} from './record.ts'
import { removedCounts } from './removal.ts'

/**
 * Writes the parts, the task and the context, in this order. If the process crashes in between, the task is not
 * acknowledged: either its parts are never read, or `listUnfinished` adds the task to its context.
 */
export async function createTask(
  store: MongoContext,
  record: TaskRecord,
  generated?: GeneratedIds,
): Promise<boolean> {
  const { agentId, tasks, parts, batches } = store
  const encoded = encodeTask(store, record, messageBound)
  const _id = encoded.document._id
  if (encoded.parts.length > 0) {
    if ((await tasks.countDocuments({ _id, agent_id: agentId }, { limit: 1 })) > 0) return false
    await saveParts(store, encoded.parts)
  }
  if (!(await batches.newTasks.add(encoded.document))) {
    if (encoded.parts.length > 0) await dropPartsUnlessOwn(store, record)
    return false
  }
  if (await joinContext(store, record, generated?.context === true)) return true
  await tasks.deleteOne({ _id, agent_id: agentId })
  if (encoded.parts.length > 0) await parts.deleteMany({ agent_id: agentId, task: taskKey(record) })
  throw new ParleyError('ContextNotFound', { data: { contextId: record.contextId } })
}

/** Removes the parts of a task that a concurrent call created first. */
async function dropPartsUnlessOwn(store: MongoContext, record: TaskRecord): Promise<void> {
  const { agentId, parts } = store
  const there = await loadTask(store, record.id)
  if (there !== undefined && taskKey(there) === taskKey(record)) return
  await parts.deleteMany({ agent_id: agentId, task: taskKey(record) })
}

/**
 * Updates the task if it still has the previous version. For a record with a lease, one request contains two updates,
 * only one of which can match: one extends the same holder's lease, the other replaces any other lease.
 */
export async function commitTask(store: MongoContext, record: TaskRecord): Promise<boolean> {
  const { tasks, agentId } = store
  const { document, parts } = encodeTask(store, record, boundOf(record.status.state))
  await saveParts(store, parts)
  const { _id, agent_id: _agent, task_id: _task, owner, context_id: _context, position, ...rest } = document
  const { holder, lease_until, ...changed } = rest
  const before = { _id, agent_id: agentId, owner, position, version: record.version - 1 }
  const gone = {
    ...absent(document, ['due_at', 'ended_at', 'parts']),
    ...(record.starts === 0 && { survived: '' as const }),
  }
  if (holder === undefined || lease_until === undefined) {
    const $unset = { ...gone, holder: '' as const, lease_until: '' as const }
    const update = { $set: changed, $unset }
    if (isLastChange(record))
      return store.batches.ends.add({ _id: document._id, filter: before, update, document })
    return (await tasks.updateOne(before, update)).matchedCount === 1
  }
  const unset = Object.keys(gone).length === 0 ? {} : { $unset: gone }
  const outcome = await tasks.bulkWrite([
    {
      updateOne: {
        filter: { ...before, holder },
        update: { $set: changed, $max: { lease_until }, ...unset },
      },
    },
    {
      updateOne: {
        filter: { ...before, holder: { $ne: holder } },
        update: { $set: { ...changed, holder, lease_until }, ...unset },
      },
    },
  ])
  return outcome.matchedCount === 1
}

function absent<T extends object, K extends keyof T>(document: T, fields: K[]): Partial<Record<K, ''>> {
  const missing = fields.filter((field) => document[field] === undefined)
  return Object.fromEntries(missing.map((field) => [field, ''])) as Partial<Record<K, ''>>
}

export async function findTask(
  store: MongoContext,
  id: string,
  owner: string,
  admit?: Admit,
): Promise<TaskRecord | undefined> {
  const found = await documentOf(store, id, owner)
  if (found === null) return undefined
  admit?.(bytesOf(found))
  return (await decodeTask(store, found)).record
}

export async function outlineTask(
  store: MongoContext,
  id: string,
  owner: string,
  admit: Admit,
): Promise<TaskOutline | undefined> {
  const found = await documentOf(store, id, owner)
  if (found === null) return undefined
  admit(found.body.length)
  return outlineOf(store, found)
}

function documentOf(
  { tasks, agentId }: MongoContext,
  id: string,
  owner: string,
): Promise<TaskDocument | null> {
  return tasks.findOne({ _id: idIn({ agentId }, id), agent_id: agentId, owner: keyText(owner) })
}

export async function ownerOf({ tasks, agentId }: MongoContext, id: string): Promise<string | undefined> {
  const task = { _id: idIn({ agentId }, id), agent_id: agentId }
  const found = await tasks.findOne<Pick<TaskDocument, 'owner'>>(task, { projection: { owner: 1 } })
  if (found === null || !found.owner.startsWith('#')) return found?.owner
  // A long owner is hashed in its field, and only the body contains it.
  const whole = await tasks.findOne<Pick<TaskDocument, 'body'>>(task, { projection: { body: 1 } })
  if (whole === null) return undefined
  const { owner }: { owner: string } = JSON.parse(whole.body)
  return owner
}

export async function loadTask(store: MongoContext, id: string): Promise<TaskRecord | undefined> {
  const found = await store.tasks.findOne({ _id: idIn(store, id), agent_id: store.agentId })
  return found === null ? undefined : (await decodeTask(store, found)).record
}

const ofUnfinished = { task_id: 1, owner: 1, context_id: 1, state: 1, version: 1, holder: 1, position: 1 }
type Unfinished = Pick<
  TaskDocument,
  'task_id' | 'owner' | 'context_id' | 'version' | 'holder' | 'position'
> & { state: 'submitted' | 'working' }

export async function listUnfinished(
  store: MongoContext,
  now: number,
  which: Unfinishedness = 'all',
): Promise<UnfinishedTask[]> {
  const { tasks, agentId } = store
  const leaseEnded = { lease_until: { $lt: now } }
  const withoutLease = { $or: [{ holder: { $exists: false } }, leaseEnded] }
  const found = await Promise.all(
    [
      { agent_id: agentId, state: 'submitted' as const, ...(which === 'left' ? leaseEnded : withoutLease) },
      { agent_id: agentId, state: 'working' as const, ...withoutLease },
    ].map((filter) => tasks.find(filter).project<Unfinished>(ofUnfinished).toArray()),
  )
  const all = found.flat().sort((a, b) => (a.position < b.position ? -1 : 1))
  const unwanted = await restoreContexts(store, all)
  return all
    .filter((task) => !unwanted.has(task.task_id))
    .map(({ task_id: id, owner, state, version, holder }) => {
      return { id, version, owner, state, leased: holder !== undefined }
    })
}

export async function countEvents(store: MongoContext, taskIds: string[]): Promise<Map<string, number>> {
  const { tasks, agentId } = store
  const wanted = { _id: { $in: taskIds.map((id) => idIn(store, id)) }, agent_id: agentId }
  const found = await tasks
    .find(wanted)
    .project<Pick<TaskDocument, '_id' | 'events'>>({ _id: 1, events: 1 })
    .toArray()
  const counts = new Map(found.map(({ _id, events }) => [_id, events]))
  const known = taskIds.flatMap((id) => {
    const count = counts.get(idIn(store, id))
    return count === undefined ? [] : [[id, count] as const]
  })
  return new Map(known)
}

export async function listDue(
  { tasks, agentId }: MongoContext,
  now: number,
  limit: number,
  which: Dueness = 'paused',
): Promise<string[]> {
  const states: readonly TaskState[] = which === 'paused' ? pausedStates : terminalStates
  const due = { agent_id: agentId, due_at: { $lte: now }, state: { $in: [...states] } }
  const found = tasks.find(due).sort({ due_at: 1 }).limit(limit).project<{ task_id: string }>({ task_id: 1 })
  return (await found.toArray()).map(({ task_id }) => task_id)
}

export async function renewLeases(
  store: MongoContext,
  holder: string,
  taskIds: string[],
  until: number,
): Promise<string[]> {
  if (taskIds.length === 0) return []
  const { tasks, agentId } = store
  const ours = {
    _id: { $in: taskIds.map((id) => idIn(store, id)) },
    agent_id: agentId,
    holder: keyText(holder),
  }
  const renewed = await untilDone(() =>
    unlessConflict(tasks.updateMany(ours, { $max: { lease_until: until } })),
  )
  if (renewed.matchedCount === taskIds.length) return []
  const held = await tasks.find(ours).project<{ _id: string }>({ _id: 1 }).toArray()
  const still = new Set(held.map(({ _id }) => _id))
  return taskIds.filter((id) => !still.has(idIn(store, id)))
}

export async function noteSurvived(store: MongoContext, taskId: string, start: number): Promise<void> {
  const running = { _id: idIn(store, taskId), agent_id: store.agentId, state: 'working' as const }
  await store.tasks.updateOne(running, { $addToSet: { survived: start } })
}

/**
 * Counts the documents. It is called only at startup. A counter would need a second write for each commit, and a
 * crash between the two would make it wrong.
 */
export async function countByState(store: MongoContext): Promise<Partial<Record<TaskState, number>>> {
  const { tasks, agentId } = store
  const removed = await removedCounts(store)
  const counts = await Promise.all(
    taskStates.map(async (state) => {
      const there = await tasks.countDocuments({ agent_id: agentId, state })
      return [state, there + (removed[state] ?? 0)] as const
    }),
  )
  return Object.fromEntries(counts.filter(([, count]) => count > 0))
}
