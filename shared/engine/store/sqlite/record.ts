import type { Cursors } from '@parley/kit/database/cursor'
import type { SqliteDatabase } from '@parley/kit/database/sqlite/database'
import { integerIn, textIn } from '@parley/kit/database/sqlite/row'
import { LazyPart } from '@parley/wire/codecs/lazy-part'
import type { Part } from '@parley/wire/model/task'
import type { LargePart, LargeParts } from '../large-parts.ts'
import type { Admit, TaskOutline, TaskRecord } from '../store.ts'
import type { EndedTasks } from './ended-tasks.ts'
import type { LoggedTask } from './logged-task.ts'
import type { TaskLog } from './task-log.ts'

/** State that the store's operations share. */
export interface SqliteContext {
  database: SqliteDatabase
  log: TaskLog
  largeParts: LargeParts
  cursors: Cursors
  endedTasks: EndedTasks
  /** Returns milliseconds since 1970. */
  now: () => number
}

export interface TaskRow {
  seq: number
  id: string
  owner: string
  context_id: string
  created_at: string
  updated_at: string
  version: number
  lease_holder: string | null
  lease_until: number | null
  due_at: number | null
  large: number
  body: string
}

/** The columns of a `TaskRow`. */
export const taskColumns =
  'seq, id, owner, context_id, created_at, updated_at, version, lease_holder, lease_until, due_at, large, body'

/** The columns of a `LoggedTask`. The name of a context is only needed to create it. */
export const loggedColumns = `${taskColumns}, state, status_at AS status_time, NULL AS context_name`

/** Bodies up to this size are read without calling `admit`. */
const admittedBytes = 64 * 1024

/** The same columns, except that `wholeRow` reads large bodies later. `octet_length` does not read the text. */
export const guardedColumns = `${taskColumns.replace(/, body$/, '')}, octet_length(body) AS bytes,
  CASE WHEN octet_length(body) <= ${admittedBytes} THEN body END AS body`

export type GuardedRow = Omit<TaskRow, 'body'> & { bytes: number; body: string | null }

/** Returns the row of a logged task as a query for `guardedColumns` would. */
export function guardedRowOf(task: LoggedTask): GuardedRow {
  const bytes = Buffer.byteLength(task.body)
  return bytes <= admittedBytes ? { ...task, bytes } : { ...task, bytes, body: null }
}

/**
 * Returns the row with its body.
 * @throws the error thrown by `admit`, before a large body is read
 */
export function wholeRow(
  { database, log }: SqliteContext,
  row: GuardedRow,
  admit: Admit | undefined,
): TaskRow {
  if (row.body !== null) return { ...row, body: row.body }
  admit?.(row.bytes)
  const logged = log.get(row.id)
  if (logged !== undefined) return logged
  const read = database.statement('SELECT body FROM tasks WHERE seq = ?').get(row.seq)
  return { ...row, body: textIn(read, 'body') }
}

/** Sets fields that have a column to undefined, so that JSON omits them from the body. */
const inColumns = {
  id: undefined,
  owner: undefined,
  contextId: undefined,
  createdAt: undefined,
  updatedAt: undefined,
  version: undefined,
  lease: undefined,
  dueAt: undefined,
} satisfies Partial<Record<keyof TaskRecord, undefined>>

type Body = Omit<TaskRecord, keyof typeof inColumns>

/**
 * Returns the row of the record, except its `seq`, and its large parts. Call this before the transaction begins: encoding
 * is most of the work, and a record that cannot be encoded must not affect other writes.
 */
export function encodeTask(
  { largeParts }: Pick<SqliteContext, 'largeParts'>,
  record: TaskRecord,
): { row: Omit<LoggedTask, 'seq'>; parts: LargePart[] } {
  const { body, parts } = largeParts.takeOut(record)
  const row = {
    id: record.id,
    owner: record.owner,
    context_id: record.contextId,
    context_name: record.contextName ?? null,
    state: record.status.state,
    status_time: record.status.timestamp,
    created_at: record.createdAt,
    updated_at: record.updatedAt,
    version: record.version,
    lease_holder: record.lease?.holder ?? null,
    lease_until: record.lease?.until ?? null,
    due_at: record.dueAt ?? null,
    large: parts.length > 0 ? 1 : 0,
    body: JSON.stringify({ ...body, ...inColumns }),
  }
  return { row, parts }
}

/** Returns the size of each of the task's large parts by hash. */
export function partBytesOf({ database }: SqliteContext, taskId: string): Map<string, number> {
  const rows = database
    .statement('SELECT hash, octet_length(body) AS bytes FROM parts WHERE task_id = ?')
    .all(taskId)
  return new Map(rows.map((row) => [textIn(row, 'hash'), integerIn(row, 'bytes')]))
}

/** Returns the record of a row and leaves its large parts in the store. */
export function outlineOf(store: SqliteContext, row: TaskRow, withArtifacts = true): TaskOutline {
  const stored: Body = JSON.parse(row.body)
  if (!withArtifacts) stored.artifacts = []
  let bytes = row.body.length
  if (row.large === 0) return { task: recordOf(row, stored), bytes }
  const sizes = partBytesOf(store, row.id)
  const body = store.largeParts.outline(stored, (hash) => {
    const size = sizes.get(hash) ?? 0
    bytes += size
    return new LazyPart(size, () =>
      store.database.read((): Part => JSON.parse(loadPart(store, row.id, hash))),
    )
  })
  return { task: recordOf(row, body), bytes }
}

/** Returns the record of a row with its large parts; `size` is the approximate length of its JSON. */
export function decodeTask(store: SqliteContext, row: TaskRow): { record: TaskRecord; size: number } {
  const stored: Body = JSON.parse(row.body)
  let size = row.body.length
  const body =
    row.large === 0
      ? stored
      : store.largeParts.putBack(stored, (hash) => {
          const json = loadPart(store, row.id, hash)
          size += json.length
          return json
        })
  return { record: recordOf(row, body), size }
}

function recordOf(row: TaskRow, body: Body): TaskRecord {
  const record: TaskRecord = {
    ...body,
    id: row.id,
    owner: row.owner,
    contextId: row.context_id,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    version: row.version,
  }
  if (row.lease_holder !== null) record.lease = { holder: row.lease_holder, until: row.lease_until ?? 0 }
  if (row.due_at !== null) record.dueAt = row.due_at
  return record
}

/** Saves the parts; existing ones stay unchanged. */
export function saveParts({ database }: SqliteContext, taskId: string, parts: LargePart[]): void {
  const there = database.statement('SELECT 1 FROM parts WHERE task_id = ? AND hash = ?')
  const insert = database.statement('INSERT INTO parts (task_id, hash, body) VALUES (?, ?, ?)')
  for (const { hash, json } of parts) {
    if (there.get(taskId, hash) === undefined) insert.run(taskId, hash, json())
  }
}

function loadPart({ database }: SqliteContext, taskId: string, hash: string): string {
  const row = database.statement('SELECT body FROM parts WHERE task_id = ? AND hash = ?').get(taskId, hash)
  if (row === undefined) throw new Error(`A large part of task ${taskId} is missing in the store`)
  return textIn(row, 'body')
}
