import { keyText, positionOf } from '@parley/kit/database/keys'
import { ParleyError } from '@parley/wire/errors'
import { isTerminal, type TaskState, taskStates, terminalStates } from '@parley/wire/model/task'
import type { Admit, ContextPage, Page, TaskOutline, TaskQuery, TaskRecord } from '../store.ts'
import { contextOf } from './contexts.ts'
import {
  type ContextDocument,
  decodeTask,
  type MongoContext,
  outlineOf,
  type TaskDocument,
} from './record.ts'

/** Maximum size of one read of tasks with their parts, in characters of JSON. */
const pageMaxLength = 64 * 1024 * 1024
/** Maximum size of one page of a response, in bytes of JSON. */
const answerPageMaxBytes = 16 * 1024 * 1024
/** Maximum numbers of task ids to read for one context and for a page. */
const [idsPerContextMax, idsPerPageMax] = [1000, 10_000]

type TaskFilter = Parameters<MongoContext['tasks']['find']>[0]

export async function listTasks(store: MongoContext, query: TaskQuery): Promise<Page<TaskRecord>> {
  return page(store, query, wholeTask(store), pageMaxLength)
}

function wholeTask(store: MongoContext): Decode<TaskRecord> {
  return async (document) => {
    const { record, size } = await decodeTask(store, document)
    return { item: record, size }
  }
}

export async function outlineTasks(
  store: MongoContext,
  query: TaskQuery,
  admit: Admit,
): Promise<Page<TaskOutline>> {
  let readBytes = 0
  const decode = async (document: TaskDocument) => {
    readBytes += document.body.length
    admit(readBytes)
    const outline = outlineOf(store, document, query.includeArtifacts)
    return { item: outline, size: outline.bytes }
  }
  return page(store, query, decode, answerPageMaxBytes)
}

type Decode<T> = (document: TaskDocument) => Promise<{ item: T; size: number }>

async function page<T>(
  store: MongoContext,
  query: TaskQuery,
  decode: Decode<T>,
  maxLength: number,
): Promise<Page<T>> {
  const { cursors, agentId } = store
  const { owner, contextId, states, cursor, statusSince, limit } = query
  const isByStatus = query.order === 'status'
  const [list, field] = isByStatus
    ? (['tasks by status', 'status_position'] as const)
    : (['tasks', 'position'] as const)
  const before = cursor === undefined ? undefined : textIn(cursors.open(list, owner, cursor))
  const ofOwner = {
    agent_id: agentId,
    owner: keyText(owner),
    ...(contextId !== undefined && { context_id: keyText(contextId) }),
    ...(states !== undefined && { state: { $in: knownStates(states) } }),
  }
  // The indexes by status contain the state, so that a server merges one range for each.
  const ofOrder =
    isByStatus && states === undefined ? { ...ofOwner, state: { $in: [...taskStates] } } : ofOwner
  const since = statusSince === undefined ? {} : { $gte: keyText(statusSince) }
  const isWithin = statusSince !== undefined || before !== undefined
  const filter = {
    ...ofOrder,
    ...(isWithin && { [field]: { ...since, ...(before !== undefined && { $lt: before }) } }),
  }
  const sinceFilter = statusSince === undefined ? ofOwner : { ...ofOrder, status_position: since }
  const [{ items, position, more }, total] = await Promise.all([
    newest(store, filter, { limit, decode, maxLength, field }),
    query.count === true ? store.tasks.countDocuments(sinceFilter) : undefined,
  ])
  const found = { items, ...(total !== undefined && { total }) }
  return more && position !== undefined
    ? { ...found, nextCursor: cursors.seal(list, owner, position) }
    : found
}

/** @throws TypeError for a value that is not a string */
function knownStates(states: readonly TaskState[]): TaskState[] {
  const names = states.map(keyText)
  return taskStates.filter((state) => names.includes(state))
}

export async function contextHistory(
  store: MongoContext,
  contextId: string,
  owner: string,
  limit: number,
): Promise<TaskRecord[]> {
  const filter = {
    agent_id: store.agentId,
    owner: keyText(owner),
    context_id: keyText(contextId),
    state: { $in: [...terminalStates] },
  }
  const bounds = { limit, decode: wholeTask(store), maxLength: pageMaxLength }
  return (await newest(store, filter, bounds)).items.reverse()
}

/** Returns the newest tasks first: as many as fit into `maxLength`, but at least one. */
async function newest<T>(
  store: MongoContext,
  filter: TaskFilter,
  {
    limit,
    decode,
    maxLength,
    field = 'position',
  }: {
    limit: number
    decode: Decode<T>
    maxLength: number
    field?: 'position' | 'status_position'
  },
): Promise<{ items: T[]; position?: string; more: boolean }> {
  const found = store.tasks
    .find(filter ?? {})
    .sort({ [field]: -1 })
    .limit(limit + 1)
  const items: T[] = []
  let length = 0
  let position: string | undefined
  for await (const document of found) {
    if (items.length >= limit || length > maxLength) {
      return { items, ...(position !== undefined && { position }), more: true }
    }
    const { item, size } = await decode(document)
    items.push(item)
    length += size
    position = document[field]
  }
  return { items, more: false }
}

export async function listContexts(
  store: MongoContext,
  query: { owner: string; limit: number; cursor?: string },
): Promise<ContextPage> {
  const { contexts, agentId, cursors } = store
  const { owner, limit, cursor } = query
  const before = cursor === undefined ? undefined : textIn(cursors.open('contexts', owner, cursor))
  const filter = {
    agent_id: agentId,
    owner: keyText(owner),
    ...(before !== undefined && { position: { $lt: before } }),
  }
  const found = await contexts
    .find(filter)
    .sort({ position: -1 })
    .limit(limit + 1)
    .toArray()
  const page = found.slice(0, limit)
  const items = await withTasks(store, page)
  const last = page[items.length - 1]
  const more = last !== undefined && items.length < found.length
  return more ? { items, nextCursor: cursors.seal('contexts', owner, last.position) } : { items }
}

type Member = Pick<TaskDocument, 'task_id' | 'context_id' | 'state' | 'position'>
const ofMember = { _id: 0, task_id: 1, context_id: 1, state: 1, position: 1 }

/** Small contexts of a page share one query. Each large context takes a few more, until the page has enough ids. */
async function withTasks(store: MongoContext, page: ContextDocument[]): Promise<ContextPage['items']> {
  const [first] = page
  if (first === undefined) return []
  const ids = page.map((context) => contextIdOf(store, context))
  const members = await store.tasks
    .find({ agent_id: store.agentId, owner: first.owner, context_id: { $in: ids } })
    .limit(idsPerPageMax)
    .project<Member>(ofMember)
    .toArray()
  const items: ContextPage['items'] = []
  if (members.length < idsPerPageMax) {
    const byContext = Map.groupBy(members, (member) => member.context_id)
    for (const [index, context] of page.entries()) {
      const own = (byContext.get(ids[index] ?? '') ?? []).sort((a, b) => (a.position < b.position ? -1 : 1))
      items.push(itemOf(context, own, own.length))
    }
    return items
  }
  let count = 0
  for (const context of page) {
    if (items.length > 0 && count >= idsPerPageMax) break
    const item = await largeItem(store, context)
    items.push(item)
    count += item.taskIds.length
  }
  return items
}

async function largeItem(
  store: MongoContext,
  context: ContextDocument,
): Promise<ContextPage['items'][number]> {
  const { tasks, agentId } = store
  const ours = { agent_id: agentId, owner: context.owner, context_id: contextIdOf(store, context) }
  const found = await tasks
    .find(ours)
    .sort({ position: -1 })
    .limit(idsPerContextMax)
    .project<Member>(ofMember)
    .toArray()
  const all = found.length < idsPerContextMax ? found.length : await tasks.countDocuments(ours)
  const item = itemOf(context, found.reverse(), all)
  if (item.busy || all === found.length) return item
  const ended = await tasks.countDocuments({ ...ours, state: { $in: [...terminalStates] } })
  return { ...item, busy: ended < all }
}

function itemOf(context: ContextDocument, members: Member[], taskCount: number) {
  const taskIds = members.slice(-idsPerContextMax).map(({ task_id }) => task_id)
  return { ...contextOf(context), taskIds, taskCount, busy: members.some(({ state }) => !isTerminal(state)) }
}

const contextIdOf = ({ agentId }: MongoContext, { _id }: ContextDocument) => _id.slice(agentId.length + 1)

/**
 * Returns the position in a cursor. Cursors created by the embedded store before a migration contain two strings for
 * contexts and a row number for tasks; the row number is not valid here.
 * @throws ParleyError InvalidParams
 */
function textIn(position: unknown): string {
  if (typeof position === 'string') return keyText(position)
  const [time, id] = Array.isArray(position) ? (position as unknown[]) : []
  if (typeof time === 'string' && typeof id === 'string') return positionOf(time, id)
  const issues = [{ path: 'cursor', message: 'it is too old; read the list from its beginning' }]
  throw new ParleyError('InvalidParams', { data: { issues } })
}
