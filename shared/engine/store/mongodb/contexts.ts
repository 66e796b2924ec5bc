import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { keyText, positionOf } from '@parley/kit/database/keys'
import { isDuplicate } from '@parley/kit/database/mongodb/database'
import { untilDone } from '@parley/kit/database/retry'
import { isTerminal, taskStates, terminalStates } from '@parley/wire/model/task'
import type { ContextRecord, TaskRecord } from '../store.ts'
import { type ContextDocument, createdAtOf, keyedIn, type MongoContext, type TaskDocument } from './record.ts'
import { ofRemoval, removeTasks } from './removal.ts'

/*
 * A context and its tasks are separate documents that change without a transaction. These rules keep them consistent:
 * - A task is stored, then added to its context, and only then acknowledged.
 * - A process that removes a context first looks for tasks, then marks the context (`leaving`) if its version has not
 *   changed. The search finds tasks added earlier, and a task added in between changes the version. While the mark
 *   exists, no task can be added; after the removal, the next task creates a new context.
 * - A mark left behind by a dead process is removed after a timeout.
 */

const openStates = taskStates.filter((state) => !isTerminal(state))
const leavingMaxMs = 2000
const removedAtOnce = 500
const joinedMax = 100_000

type Joining = Pick<TaskDocument, 'owner' | 'context_id'> & {
  contextId: string
  contextName?: string | undefined
  createdAt: string
}

/**
 * Returns false if the context belongs to another owner.
 * @param isNew whether the id of the context was generated for this task. An insert is then tried first, which is the
 * cheaper operation.
 */
export async function joinContext(
  store: MongoContext,
  task: Pick<TaskRecord, 'owner' | 'contextId' | 'contextName' | 'createdAt'>,
  isNew: boolean,
): Promise<boolean> {
  const { contextId, contextName, createdAt } = task
  const [owner, context_id] = [keyText(task.owner), keyText(contextId)]
  const joining = { owner, context_id, contextId, contextName, createdAt }
  if (isNew) {
    const document = { ...keysOf(store, joining), version: 1, ...newestOf(joining), ...firstOf(joining) }
    if (await store.batches.newContexts.add(document)) return true
  }
  return join(store, joining)
}

const keysOf = (store: MongoContext, { owner, context_id }: Joining) => {
  return { _id: keyedIn(store, context_id), agent_id: store.agentId, owner }
}

const newestOf = ({ createdAt, contextId }: Joining) => {
  return { position: positionOf(createdAt, contextId), updated_at: createdAt }
}

const firstOf = ({ createdAt, contextId, contextName, owner }: Joining) => {
  return { created_at: createdAt, body: JSON.stringify({ id: contextId, owner, name: contextName }) }
}

function join(store: MongoContext, task: Joining): Promise<boolean> {
  const { contexts, agentId } = store
  const keys = keysOf(store, task)
  const { _id, owner } = keys
  let mark: { of: string; since: number } | undefined
  return untilDone(async () => {
    try {
      const staying = { ...keys, leaving: { $exists: false } }
      const change = { $max: newestOf(task), $inc: { version: 1 }, $setOnInsert: firstOf(task) }
      await contexts.updateOne(staying, change, { upsert: true })
      return true
    } catch (error) {
      if (!isDuplicate(error)) throw error
    }
    const there = await contexts.findOne({ _id, agent_id: agentId })
    if (there !== null && there.owner !== owner) return false
    const { leaving } = there ?? {}
    if (leaving === undefined) return undefined
    if (mark?.of !== leaving) mark = { of: leaving, since: performance.now() }
    if (performance.now() - mark.since > leavingMaxMs) await stay(store, _id, leaving)
    else await pause(leavingMaxMs / 100)
    return undefined
  })
}

/**
 * Adds tasks to their contexts if the process that stored them died before doing so. Returns the ids of tasks whose
 * context belongs to another owner: these tasks were never acknowledged and are removed.
 */
export async function restoreContexts(
  store: MongoContext,
  tasks: Pick<TaskDocument, 'task_id' | 'owner' | 'context_id' | 'version' | 'position'>[],
): Promise<Set<string>> {
  const { contexts, agentId } = store
  const unwanted = new Set<string>()
  if (store.joined.size > joinedMax) store.joined.clear()
  const doubtful = tasks.filter(({ task_id, version }) => version === 0 && !store.joined.has(task_id))
  for (let from = 0; from < doubtful.length; from += 1000) {
    const some = doubtful.slice(from, from + 1000)
    const ids = some.map(({ context_id }) => keyedIn(store, context_id))
    const found = await contexts
      .find({ _id: { $in: ids }, agent_id: agentId })
      .project<Pick<ContextDocument, '_id' | 'owner'>>({ owner: 1 })
      .toArray()
    const owners = new Map(found.map(({ _id, owner }) => [_id, owner]))
    for (const task of some) {
      const there = owners.get(keyedIn(store, task.context_id)) === task.owner
      if (there || (await rejoined(store, task))) store.joined.add(task.task_id)
      else unwanted.add(task.task_id)
    }
  }
  return unwanted
}

async function rejoined(
  store: MongoContext,
  task: Pick<TaskDocument, 'task_id' | 'owner' | 'context_id' | 'position'>,
): Promise<boolean> {
  const joined = await join(store, { ...task, contextId: task.context_id, createdAt: createdAtOf(task) })
  if (!joined) {
    await store.tasks.deleteOne({ _id: keyedIn(store, task.task_id), agent_id: store.agentId, version: 0 })
  }
  return joined
}

export async function findContext(
  store: MongoContext,
  id: string,
  owner: string,
): Promise<ContextRecord | undefined> {
  const key = { _id: keyedIn(store, keyText(id)), agent_id: store.agentId, owner: keyText(owner) }
  const found = await store.contexts.findOne(key)
  return found === null ? undefined : contextOf(found)
}

export async function isAnothersContext(store: MongoContext, id: string, owner: string): Promise<boolean> {
  const found = await store.contexts.findOne({ _id: keyedIn(store, keyText(id)), agent_id: store.agentId })
  return found !== null && found.owner !== keyText(owner)
}

export function contextOf({ body, created_at, updated_at }: ContextDocument): ContextRecord {
  const named: Pick<ContextRecord, 'id' | 'owner' | 'name'> = JSON.parse(body)
  return { ...named, createdAt: created_at, updatedAt: updated_at }
}

export function clearContext(
  store: MongoContext,
  id: string,
  owner: string,
): Promise<'cleared' | 'busy' | 'absent'> {
  const ours = { agent_id: store.agentId, owner: keyText(owner), context_id: keyText(id) }
  const busy = () => anyTask(store, { ...ours, state: { $in: openStates } })
  return untilDone(async () => {
    const leaving = await leave(store, ours, busy)
    if (typeof leaving === 'string') return leaving
    if (leaving === undefined) return undefined
    for (;;) {
      const ended = await store.tasks
        .find({ ...ours, state: { $in: [...terminalStates] } })
        .limit(removedAtOnce)
        .project<TaskDocument>(ofRemoval)
        .toArray()
      // A task that was added after the removal of the mark must stay, even if it has already ended.
      if (!(await stillLeaving(store, ours.context_id, leaving.mark))) return 'busy'
      if (ended.length === 0) break
      await removeTasks(store, ended)
    }
    await removeMarked(store, ours.context_id, leaving.mark)
    return 'cleared'
  })
}

/** Both arguments have their stored form. */
export async function removeContextIfEmpty(
  store: MongoContext,
  contextId: string,
  owner: string,
): Promise<void> {
  const ours = { agent_id: store.agentId, owner, context_id: contextId }
  await untilDone(async () => {
    const leaving = await leave(store, ours, () => anyTask(store, ours))
    if (leaving === undefined) return undefined
    if (typeof leaving === 'string') return leaving
    await removeMarked(store, contextId, leaving.mark)
    return 'removed'
  })
}

/** Marks the context unless `held` returns true. Returns undefined if a concurrent change came first: try again. */
async function leave(
  store: MongoContext,
  { owner, context_id }: { owner: string; context_id: string },
  held: () => Promise<boolean>,
): Promise<{ mark: string } | 'busy' | 'absent' | undefined> {
  const { contexts, agentId } = store
  const _id = keyedIn(store, context_id)
  const there = await contexts.findOne({ _id, agent_id: agentId, owner })
  if (there === null) return 'absent'
  if (await held()) return 'busy'
  const mark = randomUUID()
  const marked = await contexts.updateOne(
    { _id, agent_id: agentId, owner, version: there.version },
    { $set: { leaving: mark }, $inc: { version: 1 } },
  )
  if (marked.matchedCount === 0) return undefined
  return { mark }
}

async function stay({ contexts, agentId }: MongoContext, _id: string, mark: string): Promise<void> {
  const marked = { _id, agent_id: agentId, leaving: mark }
  await contexts.updateOne(marked, { $unset: { leaving: '' }, $inc: { version: 1 } })
}

async function removeMarked(store: MongoContext, key: string, mark: string): Promise<void> {
  await store.contexts.deleteOne({ _id: keyedIn(store, key), agent_id: store.agentId, leaving: mark })
}

async function stillLeaving(store: MongoContext, key: string, mark: string): Promise<boolean> {
  const marked = { _id: keyedIn(store, key), agent_id: store.agentId, leaving: mark }
  return (await store.contexts.countDocuments(marked, { limit: 1 })) > 0
}

async function anyTask({ tasks }: MongoContext, filter: Parameters<MongoContext['tasks']['findOne']>[0]) {
  return (await tasks.findOne(filter ?? {}, { projection: { _id: 1 } })) !== null
}
