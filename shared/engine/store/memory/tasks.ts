import { ownsFor } from '@parley/kit/auth/caller'
import type { Cursors } from '@parley/kit/database/cursor'
import { LazyPart } from '@parley/wire/codecs/lazy-part'
import { ParleyError } from '@parley/wire/errors'
import { isTerminal, pausedStates, type TaskState, terminalStates } from '@parley/wire/model/task'
import type { AllTasksPage, AllTasksQuery } from '../all-tasks.ts'
import type { LargeParts } from '../large-parts.ts'
import type {
  Admit,
  ContextRecord,
  Page,
  Store,
  TaskOutline,
  TaskQuery,
  TaskRecord,
  UnfinishedTask,
} from '../store.ts'

/** A task as JSON, which callers cannot modify, with the fields that queries compare. */
export interface StoredTask {
  /** Position of the task in the order of creation. */
  sequence: number
  id: string
  owner: string
  contextId: string
  state: TaskState
  statusAt: string
  createdAt: string
  updatedAt: string
  version: number
  lease?: { holder: string; until: number }
  dueAt?: number
  /** The record as JSON, with references to large parts. */
  body: string
  /** Large parts as JSON, by hash. */
  parts: Map<string, string>
}

export interface MemoryContext {
  tasks: Map<string, StoredTask>
  lastSequence: number
  contexts: Map<string, ContextRecord>
  /** Number of tasks that have ever ended in each state. */
  ended: Map<TaskState, number>
  largeParts: LargeParts
  cursors: Cursors
}

/** Size limits, in characters of JSON, for a page of whole records and for a page of a response. */
const [pageMaxLength, answerPageMaxLength] = [64 * 1024 * 1024, 16 * 1024 * 1024]
/** Records up to this size are read without calling `admit`. */
const admittedLength = 64 * 1024

type TaskMethods = Pick<
  Store,
  | 'createTask'
  | 'findTask'
  | 'outlineTask'
  | 'ownerOf'
  | 'loadTask'
  | 'commitTask'
  | 'listTasks'
  | 'outlineTasks'
  | 'listAllTasks'
  | 'listUnfinished'
  | 'countEvents'
  | 'listDue'
  | 'renewLeases'
  | 'noteSurvived'
  | 'countByState'
>

export function taskMethods(store: MemoryContext): TaskMethods {
  const { tasks, ended } = store
  return {
    createTask: async (record) => createTask(store, record),
    commitTask: async (record) => commitTask(store, record),
    ...taskQueries(store),
    listTasks: async (query) =>
      page(store, query, pageMaxLength, (task) => ({ item: recordOf(store, task), length: lengthOf(task) })),
    outlineTasks: async (query, admit) => outlineTasks(store, query, admit),
    listAllTasks: async (query) => listAllTasks(store, query),
    renewLeases: async (holder, taskIds, until) =>
      taskIds.filter((id) => {
        const task = tasks.get(id)
        if (task?.lease?.holder !== holder) return true
        task.lease = { holder, until }
        return false
      }),
    noteSurvived: async () => {},
    countByState: async () => {
      const counts = new Map(ended)
      for (const { state } of tasks.values()) {
        if (!isTerminal(state)) counts.set(state, (counts.get(state) ?? 0) + 1)
      }
      return Object.fromEntries(counts)
    },
  }
}

function taskQueries(
  store: MemoryContext,
): Pick<
  TaskMethods,
  'findTask' | 'outlineTask' | 'ownerOf' | 'loadTask' | 'listUnfinished' | 'countEvents' | 'listDue'
> {
  const { tasks } = store
  const ofOwner = (id: string, owner: string) => {
    const task = tasks.get(id)
    return task?.owner === owner ? task : undefined
  }
  return {
    findTask: async (id, owner, admit) => {
      const task = ofOwner(id, owner)
      if (task === undefined) return undefined
      const length = lengthOf(task)
      if (task.parts.size > 0 || length > admittedLength) admit?.(length)
      return recordOf(store, task)
    },
    outlineTask: async (id, owner, admit) => {
      const task = ofOwner(id, owner)
      if (task === undefined) return undefined
      if (task.body.length > admittedLength) admit(task.body.length)
      return outlineOf(store, task)
    },
    ownerOf: async (id) => tasks.get(id)?.owner,
    loadTask: async (id) => {
      const task = tasks.get(id)
      return task && recordOf(store, task)
    },
    listUnfinished: async (now, ourHolder, which) => {
      const unfinished = [...tasks.values()].filter(
        ({ state, lease }) =>
          (state === 'working' || (state === 'submitted' && (which !== 'left' || lease !== undefined))) &&
          (lease?.holder !== ourHolder || lease.until < now),
      )
      return unfinished.map(unfinishedOf)
    },
    countEvents: async (taskIds) =>
      new Map(
        taskIds.flatMap((id) => {
          const task = tasks.get(id)
          return task === undefined ? [] : [[id, recordOf(store, task).events.length] as const]
        }),
      ),
    listDue: async (now, limit, which = 'paused') => {
      const isDue = which === 'paused' ? isPaused : isTerminal
      const due = [...tasks.values()].filter(
        ({ state, dueAt }) => dueAt !== undefined && dueAt <= now && isDue(state),
      )
      const sorted = due.sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0))
      return sorted.slice(0, limit).map(({ id }) => id)
    },
  }
}

function createTask(store: MemoryContext, record: TaskRecord): boolean {
  const { tasks } = store
  store.lastSequence += 1
  const stored = encode(store, record, store.lastSequence)
  if (tasks.has(record.id)) return false
  if (!joinContext(store.contexts, record)) {
    throw new ParleyError('ContextNotFound', { data: { contextId: record.contextId } })
  }
  tasks.set(record.id, stored)
  if (isTerminal(stored.state)) countEnded(store, stored.state)
  return true
}

/** Creates the context, or updates it for its new task. Returns false if the context belongs to another owner. */
function joinContext(
  contexts: Map<string, ContextRecord>,
  { contextId: id, contextName, owner, createdAt }: TaskRecord,
): boolean {
  const there = contexts.get(id)
  if (there !== undefined && there.owner !== owner) return false
  const latest = there !== undefined && there.updatedAt > createdAt ? there.updatedAt : createdAt
  const name = there === undefined ? contextName : there.name
  contexts.set(id, {
    id,
    ...(name !== undefined && { name }),
    owner,
    createdAt: there?.createdAt ?? createdAt,
    updatedAt: latest,
  })
  return true
}

function commitTask(store: MemoryContext, record: TaskRecord): boolean {
  const there = store.tasks.get(record.id)
  const stored = encode(store, record, there?.sequence ?? 0)
  if (there?.createdAt !== record.createdAt || there.version !== record.version - 1) return false
  const { lease } = stored
  // The record may have been read before its lease was last renewed.
  if (lease !== undefined && there.lease?.holder === lease.holder) {
    stored.lease = { holder: lease.holder, until: Math.max(lease.until, there.lease.until) }
  }
  store.tasks.set(record.id, stored)
  if (isTerminal(stored.state) && !isTerminal(there.state)) countEnded(store, stored.state)
  return true
}

function countEnded({ ended }: MemoryContext, state: TaskState): void {
  ended.set(state, (ended.get(state) ?? 0) + 1)
}

function encode({ largeParts }: MemoryContext, record: TaskRecord, sequence: number): StoredTask {
  const { body, parts } = largeParts.takeOut(record)
  const { id, owner, contextId, status, createdAt, updatedAt, version, lease, dueAt } = record
  return {
    sequence,
    id,
    owner,
    contextId,
    state: status.state,
    statusAt: status.timestamp,
    createdAt,
    updatedAt,
    version,
    ...(lease !== undefined && { lease: { ...lease } }),
    ...(dueAt !== undefined && { dueAt }),
    body: JSON.stringify(body),
    parts: new Map(parts.map(({ hash, json }) => [hash, json()])),
  }
}

export function recordOf({ largeParts }: MemoryContext, task: StoredTask): TaskRecord {
  const body: TaskRecord = JSON.parse(task.body)
  const record = task.parts.size === 0 ? body : largeParts.putBack(body, (hash) => task.parts.get(hash) ?? '')
  return task.lease === undefined ? record : { ...record, lease: { ...task.lease } }
}

function outlineOf({ largeParts }: MemoryContext, task: StoredTask, withArtifacts = true): TaskOutline {
  const body: TaskRecord = JSON.parse(task.body)
  if (!withArtifacts) body.artifacts = []
  let bytes = task.body.length
  const outlined = largeParts.outline(body, (hash) => {
    const json = task.parts.get(hash) ?? ''
    const size = Buffer.byteLength(json)
    bytes += size
    return new LazyPart(size, async () => JSON.parse(json))
  })
  return { task: outlined, bytes }
}

function outlineTasks(store: MemoryContext, query: TaskQuery, admit: Admit): Page<TaskOutline> {
  let read = 0
  return page(store, query, answerPageMaxLength, (task) => {
    read += task.body.length
    admit(read)
    const outline = outlineOf(store, task, query.includeArtifacts)
    return { item: outline, length: outline.bytes }
  })
}

/** Returns the newest tasks first: as many as fit into `maxLength`, but at least one. */
function page<T>(
  { tasks, cursors }: MemoryContext,
  { owner, contextId, states, cursor, limit, order, statusSince = '', count = false }: TaskQuery,
  maxLength: number,
  read: (task: StoredTask) => { item: T; length: number },
): Page<T> {
  const [list, positionOf] =
    order === 'status' ? (['tasks by status', byStatus] as const) : (['tasks', byCreation] as const)
  const before = cursor === undefined ? undefined : String(cursors.open(list, owner, cursor))
  const all = [...tasks.values()].filter(
    (task) =>
      task.owner === owner &&
      (contextId === undefined || task.contextId === contextId) &&
      (states === undefined || states.includes(task.state)) &&
      task.statusAt >= statusSince,
  )
  const found = all
    .filter((task) => before === undefined || positionOf(task) < before)
    .sort((a, b) => (positionOf(a) < positionOf(b) ? 1 : -1))
  const items: T[] = []
  let length = 0
  for (const task of found.slice(0, limit)) {
    if (length > maxLength) break
    const next = read(task)
    items.push(next.item)
    length += next.length
  }
  const last = found[items.length - 1]
  const more = last !== undefined && items.length < found.length
  return {
    items,
    ...(more && { nextCursor: cursors.seal(list, owner, positionOf(last)) }),
    ...(count && { total: all.length }),
  }
}

function listAllTasks(store: MemoryContext, query: AllTasksQuery): AllTasksPage {
  const { owner, contextId, states, since = '', until = '\uffff', limit, cursor } = query
  const { tasks, cursors } = store
  const before = cursor === undefined ? '\uffff' : String(cursors.open('all tasks', '', cursor))
  const found = [...tasks.values()]
    .filter(
      (task) =>
        (owner === undefined || ownsFor({ id: owner }, task.owner)) &&
        (contextId === undefined || task.contextId === contextId) &&
        (states === undefined || states.includes(task.state)) &&
        task.statusAt >= since &&
        task.statusAt < until &&
        byStatus(task) < before,
    )
    .sort((a, b) => (byStatus(a) < byStatus(b) ? 1 : -1))
  const page = found.slice(0, limit)
  const items = page.map((task) => outlineOf(store, task, false).task)
  const last = page.at(-1)
  const more = last !== undefined && page.length < found.length
  return more ? { items, nextCursor: cursors.seal('all tasks', '', byStatus(last)) } : { items }
}

const byCreation = ({ sequence }: StoredTask) => String(sequence).padStart(15, '0')
const byStatus = (task: StoredTask) => `${task.statusAt} ${byCreation(task)}`

/** The newest ended tasks of a context, oldest first. */
export function contextHistory(
  store: MemoryContext,
  contextId: string,
  owner: string,
  limit: number,
): TaskRecord[] {
  const ended = [...store.tasks.values()].filter(
    (task) => task.contextId === contextId && task.owner === owner && isEnded(task.state),
  )
  return ended
    .sort((a, b) => a.sequence - b.sequence)
    .slice(-limit)
    .map((task) => recordOf(store, task))
}

function unfinishedOf({ id, version, owner, state, lease }: StoredTask): UnfinishedTask {
  return {
    id,
    version,
    owner,
    state: state === 'working' ? 'working' : 'submitted',
    leased: lease !== undefined,
  }
}

function lengthOf({ body, parts }: StoredTask): number {
  let length = body.length
  for (const json of parts.values()) length += json.length
  return length
}

const isEnded = (state: TaskState) => terminalStates.some((one) => one === state)
const isPaused = (state: TaskState) => pausedStates.some((one) => one === state)
