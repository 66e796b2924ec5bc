import { integerIn, textIn } from '@parley/kit/database/sqlite/row'
import { ParleyError } from '@parley/wire/errors'
import { pausedStates, type TaskState, terminalStates } from '@parley/wire/model/task'
import type {
  Admit,
  Dueness,
  GeneratedIds,
  TaskOutline,
  TaskRecord,
  Unfinishedness,
  UnfinishedTask,
} from '../store.ts'
import type { LoggedTask } from './logged-task.ts'
import {
  decodeTask,
  encodeTask,
  type GuardedRow,
  guardedColumns,
  guardedRowOf,
  loggedColumns,
  outlineOf,
  partBytesOf,
  type SqliteContext,
  saveParts,
  type TaskRow,
  taskColumns,
  wholeRow,
} from './record.ts'

const quoted = (states: readonly TaskState[]) => states.map((state) => `'${state}'`).join(', ')

export async function createTask(
  store: SqliteContext,
  record: TaskRecord,
  generated?: GeneratedIds,
): Promise<boolean> {
  const { database, log } = store
  const { row, parts } = encodeTask(store, record)
  if (parts.length > 0 && !isTaken(store, record, generated))
    await database.write(() => saveParts(store, record.id, parts))
  // After a refusal, the caller reads the task, which must then be visible.
  while (isTaken(store, record, generated)) {
    const changing = log.changing(record.id)
    if (changing === undefined) return false
    await changing
  }
  await log.write({ ...row, seq: log.nextSeq() })
  return true
}

/** @throws ParleyError ContextNotFound if the context belongs to another owner */
function isTaken(
  store: SqliteContext,
  { id, owner, contextId }: TaskRecord,
  generated?: GeneratedIds,
): boolean {
  const { database, log } = store
  return database.readNow(() => {
    if (generated?.task !== true) {
      if (log.current(id) !== undefined) return true
      if (database.statement('SELECT 1 FROM tasks WHERE id = ?').get(id) !== undefined) return true
    }
    if (generated?.context === true) return false
    const contextOwner = log.currentOwnerOfContext(contextId) ?? storedOwner(store, contextId) ?? owner
    if (contextOwner !== owner) throw new ParleyError('ContextNotFound', { data: { contextId } })
    return false
  })
}

function storedOwner({ database }: SqliteContext, contextId: string): string | undefined {
  const row = database.statement('SELECT owner FROM contexts WHERE id = ?').get(contextId)
  return row === undefined ? undefined : textIn(row, 'owner')
}

export async function commitTask(store: SqliteContext, record: TaskRecord, soon = false): Promise<boolean> {
  const { database, log } = store
  const { row, parts } = encodeTask(store, record)
  if (parts.length > 0 && replaced(store, record) !== undefined)
    await database.write(() => saveParts(store, record.id, parts))
  let before = replaced(store, record)
  // As in `createTask`.
  for (; before === undefined; before = replaced(store, record)) {
    const changing = log.changing(record.id)
    if (changing === undefined) return false
    await changing
  }
  await log.write({ ...row, seq: before.seq, lease_until: leaseAfter(before, row) }, soon)
  return true
}

/** Returns the stored task if the record is its next version. */
function replaced(store: SqliteContext, { id, createdAt, version }: TaskRecord) {
  const before = store.database.readNow(() => store.log.current(id) ?? storedTask(store, id))
  return before?.created_at === createdAt && before.version === version - 1 ? before : undefined
}

type StoredLease = Pick<TaskRow, 'lease_holder' | 'lease_until'>

function storedTask(
  { database }: SqliteContext,
  id: string,
): (StoredLease & Pick<TaskRow, 'seq' | 'created_at' | 'version'>) | undefined {
  const sql = 'SELECT seq, created_at, version, lease_holder, lease_until FROM tasks WHERE id = ?'
  return database.statement(sql).get(id) as ReturnType<typeof storedTask>
}

/** Only extends a lease of the same holder, because the record may have been read before `renewLeases`. */
function leaseAfter(there: StoredLease, next: StoredLease): number | null {
  if (next.lease_holder === null || next.lease_holder !== there.lease_holder) return next.lease_until
  return Math.max(there.lease_until ?? 0, next.lease_until ?? 0)
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

function guardedRow({ database, log }: SqliteContext, id: string, owner: string): GuardedRow | undefined {
  const logged = log.get(id)
  if (logged !== undefined) return logged.owner === owner ? guardedRowOf(logged) : undefined
  const sql = `SELECT ${guardedColumns} FROM tasks WHERE id = ? AND owner = ?`
  return database.statement(sql).get(id, owner) as GuardedRow | undefined
}

export function ownerOf({ database, log }: SqliteContext, id: string): Promise<string | undefined> {
  return database.read(() => {
    const logged = log.get(id)
    if (logged !== undefined) return logged.owner
    const row = database.statement('SELECT owner FROM tasks WHERE id = ?').get(id)
    return row === undefined ? undefined : textIn(row, 'owner')
  })
}

export function loadTask(store: SqliteContext, id: string): Promise<TaskRecord | undefined> {
  const { database, log } = store
  return database.read(() => {
    const row = log.get(id) ?? database.statement(`SELECT ${taskColumns} FROM tasks WHERE id = ?`).get(id)
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
  const { database, log } = store
  const ofState = (state: string) => `SELECT ${columnsOfUnfinished} FROM tasks INDEXED BY tasks_open_of_owner
    WHERE open_state = '${state}' AND (lease_holder IS NULL OR lease_holder <> ?1 OR lease_until < ?2)`
  const submitted = `${ofState('submitted')}${which === 'left' ? ' AND lease_holder IS NOT NULL' : ''}`
  const abandoned = `${submitted} UNION ALL ${ofState('working')}`
  return log.readTables(() => {
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
  { database, log }: SqliteContext,
  now: number,
  limit: number,
  which: Dueness = 'paused',
): Promise<string[]> {
  const states = quoted(which === 'paused' ? pausedStates : terminalStates)
  const sql = `SELECT id FROM tasks INDEXED BY tasks_due
    WHERE due_at <= ? AND state IN (${states}) ORDER BY due_at LIMIT ?`
  return log.readTables(() =>
    database
      .statement(sql)
      .all(now, limit)
      .map((row) => textIn(row, 'id')),
  )
}

export async function renewLeases(
  store: SqliteContext,
  holder: string,
  taskIds: string[],
  until: number,
): Promise<string[]> {
  const { database, log } = store
  const sql = `SELECT ${loggedColumns} FROM tasks WHERE id = ?`
  const stored = (id: string) => database.statement(sql).get(id) as LoggedTask | undefined
  const tasks = database.readNow(() => taskIds.map((id) => log.current(id) ?? stored(id)))
  const held = tasks.flatMap((task) => (task?.lease_holder === holder ? [task] : []))
  await Promise.all(held.map((task) => log.write({ ...task, lease_until: until })))
  return taskIds.filter((_id, index) => tasks[index]?.lease_holder !== holder)
}

export function countByState({ database, log }: SqliteContext): Promise<Partial<Record<TaskState, number>>> {
  const open = `SELECT open_state AS state, count(*) AS count FROM tasks INDEXED BY tasks_open_of_owner
    WHERE open_state IN (${quoted(['submitted', 'working', ...pausedStates])}) GROUP BY open_state`
  return log.readTables(() => {
    const ended = database.statement('SELECT state, count FROM ended_counts WHERE count > 0').all()
    const rows = [...database.statement(open).all(), ...ended]
    return Object.fromEntries(rows.map((row) => [textIn(row, 'state'), integerIn(row, 'count')]))
  })
}
