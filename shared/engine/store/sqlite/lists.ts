import { integerIn } from '@parley/kit/database/sqlite/row'
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
  for (const state of states) {
    const source = isTerminal(state) ? from.ended : from.open
    const sql = `SELECT seq FROM ${source} AND seq < ? ORDER BY seq DESC LIMIT ?`
    for (const row of database.statement(sql).all(state, value, before, limit))
      all.push(integerIn(row, 'seq'))
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
  return page(store, query, (seqs) => outlines(store, seqs, admit))
}

/**
 * @param read returns the items for as many of the first rows as its limit allows
 */
function page<T>(store: SqliteContext, query: TaskQuery, read: (seqs: number[]) => T[]): Promise<Page<T>> {
  const { database, cursors } = store
  const { owner, contextId, state, cursor, limit } = query
  return database.readTogether(() => {
    const before = cursor === undefined ? undefined : Number(cursors.open('tasks', owner, cursor))
    if (contextId !== undefined && !owns(store, contextId, owner)) return { items: [] }
    const seqs = newest(store, contextId === undefined ? { owner } : { contextId }, {
      limit: limit + 1,
      ...(state !== undefined && { states: [state] }),
      ...(before !== undefined && { before }),
    })
    const items = read(seqs.slice(0, limit))
    const last = seqs[items.length - 1]
    const more = last !== undefined && items.length < seqs.length
    return more ? { items, nextCursor: cursors.seal('tasks', owner, last) } : { items }
  })
}

/** Reads as many outlines as the page limit allows, but at least one. */
function outlines(store: SqliteContext, seqs: number[], admit: Admit): TaskOutline[] {
  const found: TaskOutline[] = []
  let [bytes, readBytes] = [0, 0]
  for (const seq of seqs) {
    if (bytes > answerPageMaxBytes) break
    const row = store.database.statement(`SELECT ${guardedColumns} FROM tasks WHERE seq = ?`).get(seq)
    const guarded = row as unknown as GuardedRow
    readBytes += guarded.bytes
    admit(readBytes)
    const outline = outlineOf(store, wholeRow(store, guarded, undefined))
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
  return store.database.readTogether(() => {
    if (!owns(store, contextId, owner)) return []
    return load(store, newest(store, { contextId }, { states: terminalStates, limit })).reverse()
  })
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
