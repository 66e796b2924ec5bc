import { cp, mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { LargeParts } from '../large-parts.ts'
import { alice, bob, created, createdIn, next, sampleRecord } from '../sample-record.cases.ts'
import type { TaskRecord } from '../store.ts'
import { removeEnded } from './contexts.ts'
import type { SqliteContext } from './record.ts'
import { agentMigrations } from './schema.ts'
import { openSource } from './source.ts'
import { openSqliteStore } from './store.ts'
import { TaskLog } from './task-log.ts'
import { commitTask, createTask } from './tasks.ts'

let folder = ''
let file = ''

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-task-log-'))
  file = path.join(folder, 'agent.db')
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

/** Number of rows in a table, as another program sees it. */
function rowsOf(table: string, of = file): number {
  using reader = new DatabaseSync(of, { readOnly: true })
  return Number(reader.prepare(`SELECT count(*) AS count FROM ${table}`).get()?.['count'])
}

/** The files as a killed process would leave them. */
async function killed(): Promise<string> {
  const copy = path.join(folder, 'killed')
  for (const suffix of ['', '-wal']) await cp(file + suffix, path.join(copy, `agent.db${suffix}`))
  return path.join(copy, 'agent.db')
}

test('a changed task is in the log until a list is read, and in the tables afterwards', async () => {
  await using store = await openSqliteStore({ file })
  const record = await created(store)
  await store.commitTask(next(record, 'completed'))
  expect([rowsOf('task_log'), rowsOf('tasks'), rowsOf('contexts')]).toEqual([2, 0, 0])
  expect((await store.listTasks({ owner: alice, limit: 9 })).items).toHaveLength(1)
  expect([rowsOf('task_log'), rowsOf('tasks'), rowsOf('contexts')]).toEqual([0, 1, 1])
})

test('without further requests, the log is moved into the tables', async () => {
  await using store = await openSqliteStore({ file })
  await created(store)
  await expect.poll(() => [rowsOf('task_log'), rowsOf('tasks')]).toEqual([0, 1])
})

test('a log that grows over its limits is moved into the tables in parts, and loses nothing', async () => {
  await using store = await openSqliteStore({ file })
  await Promise.all(Array.from({ length: 600 }, () => created(store)))
  await created(store)
  await expect.poll(() => rowsOf('tasks'), { interval: 1 }).toBeGreaterThan(0)
  const copy = await killed()
  expect(rowsOf('tasks', copy)).toBeLessThan(601)
  await using second = await openSqliteStore({ file: copy })
  for (const one of [store, second]) expect(await one.countByState()).toEqual({ submitted: 601 })
})

test('a read of one context leaves the tasks of other contexts in the log', async () => {
  await using store = await openSqliteStore({ file })
  const stored = await createdIn(store, 'completed')
  await store.countByState()
  const logged = await createdIn(store, 'completed')
  const history = async ({ contextId }: TaskRecord) => store.contextHistory(contextId, alice, 9)
  expect(await history(stored)).toEqual([stored])
  expect((await store.listTasks({ owner: alice, contextId: stored.contextId, limit: 9 })).items).toEqual([
    stored,
  ])
  expect(await store.findContext(stored.contextId, alice)).toMatchObject({ id: stored.contextId })
  expect(rowsOf('tasks')).toBe(1)
  expect(await history(logged)).toEqual([logged])
  expect(rowsOf('tasks')).toBe(2)
})

test('closing moves the log into the tables', async () => {
  const store = await openSqliteStore({ file })
  await created(store)
  await store[Symbol.asyncDispose]()
  expect([rowsOf('task_log'), rowsOf('tasks')]).toEqual([0, 1])
})

test('the next start moves what a killed process left in the log, in the order of creation', async () => {
  await using store = await openSqliteStore({ file })
  const [one, two] = [await created(store), await created(store)]
  const ended = next(one, 'completed')
  await store.commitTask(ended)
  const copy = await killed()
  expect([rowsOf('task_log', copy), rowsOf('tasks', copy)]).toEqual([3, 0])
  await using second = await openSqliteStore({ file: copy })
  expect([rowsOf('task_log', copy), rowsOf('tasks', copy)]).toEqual([0, 2])
  expect((await second.listTasks({ owner: alice, limit: 9 })).items).toEqual([two, ended])
  expect(await second.countByState()).toEqual({ submitted: 1, completed: 1 })
  const three = await created(second)
  expect((await second.listTasks({ owner: alice, limit: 1 })).items).toEqual([three])
})

test('a migration to another store reads what a killed process left in the log', async () => {
  await using store = await openSqliteStore({ file })
  const { id } = await created(store)
  await using source = await openSource(await killed(), agentMigrations)
  expect(source.database.statement('SELECT id FROM tasks').all()).toEqual([{ id }])
})

test('a task that enters the tables before and after it ends is counted once', async () => {
  await using store = await openSqliteStore({ file })
  const record = await created(store)
  expect(await store.countByState()).toEqual({ submitted: 1 })
  const ended = next(record, 'completed')
  await store.commitTask(ended)
  expect(await store.countByState()).toEqual({ completed: 1 })
  await store.commitTask(next(ended, 'completed'))
  expect(await store.countByState()).toEqual({ completed: 1 })
  expect((await store.listContexts({ owner: alice, limit: 1 })).items).toMatchObject([{ taskCount: 1 }])
})

test('of two changes of a task in one transaction, the second fails', async () => {
  await using store = await openSqliteStore({ file })
  const record = await created(store)
  const changes = ['completed', 'failed'] as const
  expect(await Promise.all(changes.map((state) => store.commitTask(next(record, state))))).toEqual([
    true,
    false,
  ])
  expect(await store.loadTask(record.id)).toMatchObject({ status: { state: 'completed' } })
})

test('of two owners who create the same context in one transaction, the second is rejected', async () => {
  await using store = await openSqliteStore({ file })
  const record = sampleRecord()
  const other = sampleRecord({ owner: bob, contextId: record.contextId })
  const [mine, theirs] = await Promise.allSettled([store.createTask(record), store.createTask(other)])
  expect(mine).toMatchObject({ value: true })
  expect(theirs).toMatchObject({ reason: { error: 'ContextNotFound' } })
  expect(await store.isAnothersContext(record.contextId, bob)).toBe(true)
  expect(await store.isAnothersContext(record.contextId, alice)).toBe(false)
})

test('a write that fails in the same transaction does not affect a logged task', async () => {
  await using store = await openSqliteStore({ file })
  const record = sampleRecord()
  const other = sampleRecord({ owner: bob, contextId: record.contextId })
  const third = sampleRecord()
  await Promise.allSettled([store.createTask(record), store.createTask(other), store.createTask(third)])
  expect((await store.listTasks({ owner: alice, limit: 9 })).items).toEqual([third, record])
  expect((await store.listTasks({ owner: bob, limit: 9 })).items).toEqual([])
})

test('a removed task does not return from the log', async () => {
  await using store = await openSqliteStore({ file })
  const record = await createdIn(store, 'completed')
  await Promise.all([store.removeEnded('9999', 10), created(store)])
  await store.clearContext(record.contextId, alice)
  const copy = await killed()
  await using second = await openSqliteStore({ file: copy })
  expect(await second.loadTask(record.id)).toBeUndefined()
})

test('retention keeps a task and a context that change in the same transaction', async () => {
  const store = await openSqliteStore({ file })
  const record = await createdIn(store, 'completed', { contextName: 'n' })
  await store[Symbol.asyncDispose]()
  const database = await openDatabase(file, agentMigrations)
  const [log, largeParts] = [TaskLog.open(database), new LargeParts(1000)]
  const at = { database, log, largeParts } as SqliteContext
  const changed = next(record, 'completed')
  const added = sampleRecord({ contextId: record.contextId })
  const removed = Promise.all([commitTask(at, changed), createTask(at, added), removeEnded(at, '9999', 10)])
  expect(await removed).toEqual([true, true, 0])
  await database[Symbol.asyncDispose]()
  await using second = await openSqliteStore({ file })
  expect((await second.listTasks({ owner: alice, limit: 9 })).items).toEqual([added, changed])
  expect(await second.findContext(record.contextId, alice)).toMatchObject({ name: 'n' })
})

test('retention keeps a context that gets a new task in the same transaction', async () => {
  const store = await openSqliteStore({ file })
  const { contextId } = await createdIn(store, 'completed', { contextName: 'n' })
  await store[Symbol.asyncDispose]()
  const database = await openDatabase(file, agentMigrations)
  const [log, largeParts] = [TaskLog.open(database), new LargeParts(1000)]
  const at = { database, log, largeParts } as SqliteContext
  const outcome = Promise.all([createTask(at, sampleRecord({ contextId })), removeEnded(at, '9999', 10)])
  expect(await outcome).toEqual([true, 1])
  await database[Symbol.asyncDispose]()
  await using second = await openSqliteStore({ file })
  expect((await second.listContexts({ owner: alice, limit: 9 })).items).toMatchObject([
    { name: 'n', taskCount: 1 },
  ])
})

test('a context that changes at the same time is busy until its task ends', async () => {
  await using store = await openSqliteStore({ file })
  const { contextId } = await createdIn(store, 'completed')
  const [task, outcome] = await Promise.all([
    created(store, { contextId }),
    store.clearContext(contextId, alice),
  ])
  expect(outcome).toBe('busy')
  await store.commitTask(next(task, 'completed'))
  expect(await store.clearContext(contextId, alice)).toBe('cleared')
  expect([rowsOf('tasks'), rowsOf('contexts'), rowsOf('task_log')]).toEqual([0, 0, 0])
})

test('leases are renewed in the log and in the tables', async () => {
  await using store = await openSqliteStore({ file })
  const lease = { holder: 'h', until: 10 }
  const stored = await created(store, { lease })
  await store.countByState()
  const logged = await created(store, { lease })
  expect(await store.renewLeases('h', [stored.id, logged.id], 20)).toEqual([])
  for (const { id } of [stored, logged]) expect((await store.loadTask(id))?.lease?.until).toBe(20)
  // The record was read before its lease was extended.
  await store.commitTask(next(logged, 'working'))
  expect((await store.loadTask(logged.id))?.lease?.until).toBe(20)
})

test('lists include logged tasks even if the tables cannot be written', async () => {
  const database = await openDatabase(file, agentMigrations)
  const log = TaskLog.open(database)
  const row = () => ({
    seq: log.nextSeq(),
    id: 'a',
    owner: alice,
    context_id: 'c',
    context_name: null,
    state: 'submitted' as const,
    status_time: 't',
    created_at: 't',
    updated_at: 't',
    version: 0,
    lease_holder: null,
    lease_until: null,
    due_at: null,
    large: 0,
    body: '{}',
  })
  await database.write(() => log.stage(row()))
  using other = new DatabaseSync(file)
  const tasks = () => database.statement('SELECT id FROM tasks').all()
  other.exec("CREATE TRIGGER full AFTER DELETE ON task_log BEGIN SELECT raise(ABORT, 'full'); END")
  expect(() => log.flush()).toThrow('full')
  expect(await log.readTables(tasks)).toEqual([{ id: 'a' }])
  expect([rowsOf('tasks'), rowsOf('task_log')]).toEqual([0, 1])
  other.exec('DROP TRIGGER full')
  expect(await log.readTables(tasks)).toEqual([{ id: 'a' }])
  expect([rowsOf('tasks'), rowsOf('task_log')]).toEqual([1, 0])
  await database[Symbol.asyncDispose]()
})
