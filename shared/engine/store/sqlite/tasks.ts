import { integerIn, textIn } from '@parley/kit/database/sqlite/row'
import { ParleyError } from '@parley/wire/errors'
import { isTerminal, pausedStates, type TaskState, terminalStates } from '@parley/wire/model/task'
import type { Admit, Dueness, TaskOutline, TaskRecord, Unfinishedness, UnfinishedTask } from '../store.ts'
import {
  decodeTask,
  encodeTask,
  type GuardedRow,
  guardedColumns,
  outlineOf,
  partBytesOf,
  type SqliteContext,
  saveParts,
  type TaskRow,
  taskColumns,
  wholeRow,
} from './record.ts'

const quoted = (states: readonly TaskState[]) => states.map((state) => `'${state}'`).join(', ')

const insertTask = `INSERT INTO tasks
  (id, owner, context_id, state, created_at, updated_at, version, lease_holder, lease_until, due_at, large, body,
  status_time)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

/**
 * Counts the task in its context and creates the context if it does not exist. Changes nothing if the context belongs
 * to another owner.
 */
const countInContext = `INSERT INTO contexts (id, owner, created_at, updated_at, name, task_count)
  VALUES (?, ?, ?, ?, ?, 1)
  ON CONFLICT (id) DO UPDATE SET task_count = task_count + 1, updated_at = max(updated_at, excluded.updated_at)
  WHERE owner = excluded.owner`

export async function createTask(store: SqliteContext, record: TaskRecord): Promise<boolean> {
  const { database } = store
  const { id, owner, contextId, contextName, status, createdAt, updatedAt, version, lease, dueAt } = record
  const { body, large, parts } = encodeTask(store, record)
  return database.write(() => {
    if (database.statement('SELECT 1 FROM tasks WHERE id = ?').get(id) !== undefined) return false
    const { changes } = database
      .statement(countInContext)
      .run(contextId, owner, createdAt, createdAt, contextName ?? null)
    if (changes !== 1) throw new ParleyError('ContextNotFound', { data: { contextId } })
    saveParts(store, id, parts)
    const holder = lease?.holder ?? null
    const until = lease?.until ?? null
    database
      .statement(insertTask)
      .run(
        id,
        owner,
        contextId,
        status.state,
        createdAt,
        updatedAt,
        version,
        holder,
        until,
        dueAt ?? null,
        large,
        body,
        status.timestamp,
      )
    if (isTerminal(status.state)) countEnded(store, status.state)
    return true
  })
}

/** Only extends a lease of the same holder, because the record may have been read before `renewLeases`. */
const updateTask = `UPDATE tasks SET state = ?, updated_at = ?, version = ?,
  lease_until = CASE WHEN lease_holder = ? THEN max(lease_until, ?) ELSE ? END, lease_holder = ?,
  due_at = ?, large = ?, body = ?, status_time = ? WHERE seq = ?`

export async function commitTask(store: SqliteContext, record: TaskRecord, soon = false): Promise<boolean> {
  const { database } = store
  const { id, status, createdAt, updatedAt, version, lease, dueAt } = record
  const { body, large, parts } = encodeTask(store, record)
  const holder = lease?.holder ?? null
  const until = lease?.until ?? null
  const write = () => {
    const there = database
      .statement('SELECT seq, version, state FROM tasks WHERE id = ? AND created_at = ?')
      .get(id, createdAt)
    if (there === undefined || there['version'] !== version - 1) return false
    saveParts(store, id, parts)
    database
      .statement(updateTask)
      .run(
        status.state,
        updatedAt,
        version,
        holder,
        until,
        until,
        holder,
        dueAt ?? null,
        large,
        body,
        status.timestamp,
        integerIn(there, 'seq'),
      )
    if (isTerminal(status.state) && !terminalStates.some((state) => state === there['state']))
      countEnded(store, status.state)
    return true
  }
  return soon ? database.writeSoon(write) : database.write(write)
}

function countEnded({ database }: SqliteContext, state: TaskState): void {
  database.statement('UPDATE ended_counts SET count = count + 1 WHERE state = ?').run(state)
}

export function findTask(
  store: SqliteContext,
  id: string,
  owner: string,
  admit?: Admit,
): Promise<TaskRecord | undefined> {
  return store.database.read(() => {
    const row = guardedRow(store, id, owner)
    if (row === undefined) return undefined
    if (admit !== undefined && (row.large === 1 || row.body === null)) {
      let bytes = row.bytes
      if (row.large === 1) for (const size of partBytesOf(store, id).values()) bytes += size
      admit(bytes)
    }
    return decodeTask(store, wholeRow(store, row, undefined)).record
  })
}

export async function outlineTask(
  store: SqliteContext,
  id: string,
  owner: string,
  admit: Admit,
): Promise<TaskOutline | undefined> {
  const cached = store.endedTasks.get(id, owner)
  if (cached !== undefined) return cached
  return store.database.read(() => {
    const row = guardedRow(store, id, owner)
    if (row === undefined) return undefined
    return store.endedTasks.keep(outlineOf(store, wholeRow(store, row, admit)), row.large === 0)
  })
}

function guardedRow({ database }: SqliteContext, id: string, owner: string): GuardedRow | undefined {
  const sql = `SELECT ${guardedColumns} FROM tasks WHERE id = ? AND owner = ?`
  return database.statement(sql).get(id, owner) as GuardedRow | undefined
}

export function ownerOf({ database }: SqliteContext, id: string): Promise<string | undefined> {
  return database.read(() => {
    const row = database.statement('SELECT owner FROM tasks WHERE id = ?').get(id)
    return row === undefined ? undefined : textIn(row, 'owner')
  })
}

export function loadTask(store: SqliteContext, id: string): Promise<TaskRecord | undefined> {
  const { database } = store
  return database.read(() => {
    const row = database.statement(`SELECT ${taskColumns} FROM tasks WHERE id = ?`).get(id)
    return row === undefined ? undefined : decodeTask(store, row as unknown as TaskRow).record
  })
}

export async function countEvents(store: SqliteContext, taskIds: string[]): Promise<Map<string, number>> {
  const found = await Promise.all(taskIds.map((id) => loadTask(store, id)))
  return new Map(found.flatMap((task) => (task === undefined ? [] : [[task.id, task.events.length]])))
}

const columnsOfUnfinished = 'seq, id, version, owner, state, lease_holder IS NOT NULL AS leased'

export function listUnfinished(
  store: SqliteContext,
  now: number,
  ourHolder: string,
  which: Unfinishedness = 'all',
): Promise<UnfinishedTask[]> {
  const { database } = store
  const ofState = (state: string) => `SELECT ${columnsOfUnfinished} FROM tasks INDEXED BY tasks_open_of_owner
    WHERE open_state = '${state}' AND (lease_holder IS NULL OR lease_holder <> ?1 OR lease_until < ?2)`
  const submitted = `${ofState('submitted')}${which === 'left' ? ' AND lease_holder IS NOT NULL' : ''}`
  const abandoned = `${submitted} UNION ALL ${ofState('working')}`
  return database.read(() => {
    const rows = database.statement(abandoned).all(ourHolder, now)
    rows.sort((a, b) => integerIn(a, 'seq') - integerIn(b, 'seq'))
    return rows.map((row) => ({
      id: textIn(row, 'id'),
      version: integerIn(row, 'version'),
      owner: textIn(row, 'owner'),
      state: row['state'] === 'working' ? 'working' : 'submitted',
      leased: row['leased'] === 1,
    }))
  })
}

export function listDue(
  { database }: SqliteContext,
  now: number,
  limit: number,
  which: Dueness = 'paused',
): Promise<string[]> {
  const states = quoted(which === 'paused' ? pausedStates : terminalStates)
  const sql = `SELECT id FROM tasks INDEXED BY tasks_due
    WHERE due_at <= ? AND state IN (${states}) ORDER BY due_at LIMIT ?`
  return database.read(() =>
    database
      .statement(sql)
      .all(now, limit)
      .map((row) => textIn(row, 'id')),
  )
}

export function renewLeases(
  { database }: SqliteContext,
  holder: string,
  taskIds: string[],
  until: number,
): Promise<string[]> {
  const sql = 'UPDATE tasks SET lease_until = ? WHERE id = ? AND lease_holder = ?'
  return database.write(() => {
    const renew = database.statement(sql)
    return taskIds.filter((id) => renew.run(until, id, holder).changes === 0)
  })
}

export function countByState({ database }: SqliteContext): Promise<Partial<Record<TaskState, number>>> {
  const open = `SELECT open_state AS state, count(*) AS count FROM tasks INDEXED BY tasks_open_of_owner
    WHERE open_state IN (${quoted(['submitted', 'working', ...pausedStates])}) GROUP BY open_state`
  return database.read(() => {
    const ended = database.statement('SELECT state, count FROM ended_counts WHERE count > 0').all()
    const rows = [...database.statement(open).all(), ...ended]
    return Object.fromEntries(rows.map((row) => [textIn(row, 'state'), integerIn(row, 'count')]))
  })
}
