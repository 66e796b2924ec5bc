import { integerIn, textIn } from '@parley/kit/database/sqlite/row'
import { isTerminal, type TaskState, taskStates, terminalStates } from '@parley/wire/model/task'
import type { Admit, Page, TaskOutline, TaskQuery, TaskRecord } from '../store.ts'
import {
  decodeTask,
  type GuardedRow,
  guardedColumns,
  outlineOf,
  type SqliteContext,
  type TaskRow,
  taskColumns,
  wholeRow,
} from './record.ts'

/** Maximum size of one read of tasks with their parts, in characters of JSON. */
const pageMaxLength = 64 * 1024 * 1024
/** Maximum size of one page of a response, in bytes of JSON. */
export const answerPageMaxBytes = 16 * 1024 * 1024

/**
 * Indexes are named explicitly because SQLite, without statistics, may choose one that reads all of an owner's tasks.
 */
const byState = {
  owner: {
    open: 'tasks INDEXED BY tasks_open_of_owner WHERE open_state = ? AND owner = ?',
    ended: 'tasks INDEXED BY tasks_ended_of_owner WHERE ended_state = ? AND owner = ?',
  },
  context: {
    open: 'tasks INDEXED BY tasks_open_of_context WHERE open_state = ? AND context_id = ?',
    ended: 'tasks INDEXED BY tasks_ended_of_context WHERE ended_state = ? AND context_id = ?',
  },
}

/**
 * Merges the newest tasks of each state into a list of an owner's or context's tasks before `before`, newest first.
 */
export function newest(
  { database }: SqliteContext,
  of: { owner: string } | { contextId: string },
  query: { states?: readonly TaskState[]; before?: number; limit: number },
): number[] {
  const [from, value] = 'owner' in of ? [byState.owner, of.owner] : [byState.context, of.contextId]
  const { states = taskStates, before = Number.MAX_SAFE_INTEGER, limit } = query
  const all: number[] = []
  for (const state of new Set(states)) {
    // The indexes of open tasks, which are few, are in the order by status.
    const rows = isTerminal(state)
      ? database
          .statement(`SELECT seq FROM ${from.ended} AND seq < ? ORDER BY seq DESC LIMIT ?`)
          .all(state, value, before, limit)
      : database.statement(`SELECT seq FROM ${from.open} AND seq < ?`).all(state, value, before)
    for (const row of rows) all.push(integerIn(row, 'seq'))
  }
  return all.sort((a, b) => b - a).slice(0, limit)
}

export function listTasks(store: SqliteContext, query: TaskQuery): Promise<Page<TaskRecord>> {
  return page(store, query, (seqs) => load(store, seqs))
}

export function outlineTasks(
  store: SqliteContext,
  query: TaskQuery,
  admit: Admit,
): Promise<Page<TaskOutline>> {
  return page(store, query, (seqs) => outlines(store, seqs, admit, query.includeArtifacts))
}

const byStatus = {
  owner: {
    open: byState.owner.open,
    ended: 'tasks INDEXED BY tasks_ended_by_status_of_owner WHERE ended_state = ? AND owner = ?',
  },
  context: {
    open: byState.context.open,
    ended: 'tasks INDEXED BY tasks_ended_by_status_of_context WHERE ended_state = ? AND context_id = ?',
  },
}

/** The position of a task in the order by status. */
interface StatusPosition {
  at: string
  seq: number
}

/** Like `newest`, in the order by status. */
function newestStatus(
  { database }: SqliteContext,
  { owner, contextId, states = taskStates, statusSince = '' }: TaskQuery,
  { before, limit }: { before: StatusPosition | undefined; limit: number },
): StatusPosition[] {
  const [from, value] = contextId === undefined ? [byStatus.owner, owner] : [byStatus.context, contextId]
  const all: StatusPosition[] = []
  for (const state of new Set(states)) {
    const sql = `SELECT seq, status_at FROM ${isTerminal(state) ? from.ended : from.open}
      AND status_at >= ? AND (status_at, seq) < (?, ?) ORDER BY status_at DESC, seq DESC LIMIT ?`
    // U+FFFF sorts after every timestamp.
    const rows = database
      .statement(sql)
      .all(state, value, statusSince, before?.at ?? '\uffff', before?.seq ?? 0, limit)
    for (const row of rows) all.push({ at: textIn(row, 'status_at'), seq: integerIn(row, 'seq') })
  }
  return all.sort((a, b) => (a.at === b.at ? b.seq - a.seq : a.at < b.at ? 1 : -1)).slice(0, limit)
}

/** Counts the entries of one index per state. */
function total(
  { database }: SqliteContext,
  { owner, contextId, states = taskStates, statusSince }: TaskQuery,
): number {
  const source = statusSince === undefined ? byState : byStatus
  const [from, value] = contextId === undefined ? [source.owner, owner] : [source.context, contextId]
  let count = 0
  for (const state of new Set(states)) {
    const sql = `SELECT count(*) AS count FROM ${isTerminal(state) ? from.ended : from.open}`
    const row =
      statusSince === undefined
        ? database.statement(sql).get(state, value)
        : database.statement(`${sql} AND status_at >= ?`).get(state, value, statusSince)
    if (row !== undefined) count += integerIn(row, 'count')
  }
  return count
}

/**
 * @param read returns the items for as many of the first rows as its limit allows
 */
function page<T>(store: SqliteContext, query: TaskQuery, read: (seqs: number[]) => T[]): Promise<Page<T>> {
  const { cursors, log } = store
  const { owner, contextId, order, count = false, limit } = query
  return log.readTables(() => {
    const rows = order === 'status' ? pageByStatus(store, query) : pageByCreation(store, query)
    if (contextId !== undefined && !owns(store, contextId, owner))
      return { items: [], ...(count && { total: 0 }) }
    const { seqs, list, positionOf } = rows()
    const items = read(seqs.slice(0, limit))
    const found = { items, ...(count && { total: total(store, query) }) }
    const last = items.length - 1
    const more = last >= 0 && items.length < seqs.length
    return more ? { ...found, nextCursor: cursors.seal(list, owner, positionOf(last)) } : found
  }, contextId)
}

/** The rows of a page and one more, and the position of each for a cursor. */
interface PageRows {
  seqs: number[]
  list: string
  positionOf: (index: number) => unknown
}

/** @throws ParleyError InvalidParams for an invalid cursor */
function pageByCreation(store: SqliteContext, query: TaskQuery): () => PageRows {
  const list = 'tasks'
  const { owner, contextId, states, cursor, limit } = query
  const before = cursor === undefined ? undefined : Number(store.cursors.open(list, owner, cursor))
  return () => {
    const seqs = newest(store, contextId === undefined ? { owner } : { contextId }, {
      limit: limit + 1,
      ...(states !== undefined && { states }),
      ...(before !== undefined && { before }),
    })
    return { seqs, list, positionOf: (index) => seqs[index] }
  }
}

/** @throws ParleyError InvalidParams for an invalid cursor */
function pageByStatus(store: SqliteContext, query: TaskQuery): () => PageRows {
  const list = 'tasks by status'
  const { owner, cursor, limit } = query
  const position = cursor === undefined ? undefined : store.cursors.open(list, owner, cursor)
  const [at, seq]: unknown[] = Array.isArray(position) ? position : []
  const before = position === undefined ? undefined : { at: String(at), seq: Number(seq) }
  return () => {
    const rows = newestStatus(store, query, { before, limit: limit + 1 })
    const positionOf = (index: number) => [rows[index]?.at, rows[index]?.seq]
    return { seqs: rows.map((row) => row.seq), list, positionOf }
  }
}

/** Reads as many outlines as the page limit allows, but at least one. */
function outlines(
  store: SqliteContext,
  seqs: number[],
  admit: Admit,
  withArtifacts: boolean | undefined,
): TaskOutline[] {
  const found: TaskOutline[] = []
  let [bytes, readBytes] = [0, 0]
  for (const seq of seqs) {
    if (bytes > answerPageMaxBytes) break
    const row = store.database.statement(`SELECT ${guardedColumns} FROM tasks WHERE seq = ?`).get(seq)
    const guarded = row as unknown as GuardedRow
    readBytes += guarded.bytes
    admit(readBytes)
    const outline = outlineOf(store, wholeRow(store, guarded, undefined), withArtifacts)
    found.push(outline)
    bytes += outline.bytes
  }
  return found
}

export function contextHistory(
  store: SqliteContext,
  contextId: string,
  owner: string,
  limit: number,
): Promise<TaskRecord[]> {
  return store.log.readTables(() => {
    if (!owns(store, contextId, owner)) return []
    return load(store, newest(store, { contextId }, { states: terminalStates, limit })).reverse()
  }, contextId)
}

/** All tasks of a context have the same owner. */
function owns({ database }: SqliteContext, contextId: string, owner: string): boolean {
  const sql = 'SELECT 1 FROM contexts WHERE id = ? AND owner = ?'
  return database.statement(sql).get(contextId, owner) !== undefined
}

/** Reads as many records as the size limit allows, but at least one. */
function load(store: SqliteContext, seqs: number[]): TaskRecord[] {
  const records: TaskRecord[] = []
  let length = 0
  for (const seq of seqs) {
    if (length > pageMaxLength) break
    const { record, size } = loadBySeq(store, seq)
    records.push(record)
    length += size
  }
  return records
}

export function loadBySeq(store: SqliteContext, seq: number): { record: TaskRecord; size: number } {
  const row = store.database.statement(`SELECT ${taskColumns} FROM tasks WHERE seq = ?`).get(seq)
  return decodeTask(store, row as unknown as TaskRow)
}
