import type { Cursors } from './cursor.ts'
import type { LargePart, LargeParts } from './large-parts.ts'
import type { SqliteDatabase } from './sqlite-database.ts'
import type { TaskRecord } from './store.ts'

/** What the questions and changes of the embedded store stand on. */
export interface Inside {
  database: SqliteDatabase
  largeParts: LargeParts
  cursors: Cursors
  /** Milliseconds since 1970. */
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

/** What has a column does not stand in the body as well: JSON leaves out what is undefined. */
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

export interface StoredTask {
  body: string
  large: 0 | 1
  parts: LargePart[]
}

/** Made before the transaction: encoding is most of the work, and a record that cannot be encoded fails its caller alone. */
export function encodeTask({ largeParts }: Inside, record: TaskRecord): StoredTask {
  const { body, parts } = largeParts.takeOut(record)
  return { body: JSON.stringify({ ...body, ...inColumns }), large: parts.length > 0 ? 1 : 0, parts }
}

/** The record of a row, with its large parts; `size` is about the length of its JSON. */
export function decodeTask(inside: Inside, row: TaskRow): { record: TaskRecord; size: number } {
  const stored = JSON.parse(row.body) as Body
  let size = row.body.length
  const body =
    row.large === 0
      ? stored
      : inside.largeParts.putBack(stored, (hash) => {
          const json = loadPart(inside, row.id, hash)
          size += json.length
          return json
        })
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
  return { record, size }
}

/** Those that are there already stay as they are. */
export function saveParts({ database }: Inside, taskId: string, parts: LargePart[]): void {
  const there = database.statement('SELECT 1 FROM parts WHERE task_id = ? AND hash = ?')
  const insert = database.statement('INSERT INTO parts (task_id, hash, body) VALUES (?, ?, ?)')
  for (const { hash, json } of parts) {
    if (there.get(taskId, hash) === undefined) insert.run(taskId, hash, json())
  }
}

function loadPart({ database }: Inside, taskId: string, hash: string): string {
  const row = database.statement('SELECT body FROM parts WHERE task_id = ? AND hash = ?').get(taskId, hash)
  if (row === undefined) throw new Error(`A large part of task ${taskId} is missing in the store`)
  return row['body'] as string
}
