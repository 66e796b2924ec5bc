import { statSync } from 'node:fs'
import { cp, type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { LargeParts } from '../large-parts.ts'
import { alice, artifactOf, bob, created, createdIn, next, sampleRecord } from '../sample-record.cases.ts'
import type { TaskRecord } from '../store.ts'
import { removeEnded } from './contexts.ts'
import { encodeTask, type SqliteContext } from './record.ts'
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
  for (const suffix of ['-log.1', '-log.2', '', '-wal'])
    await cp(file + suffix, path.join(copy, `agent.db${suffix}`))
  return path.join(copy, 'agent.db')
}

/** Opens a store without an interface, for writes that are made in the same turn. */
async function opened() {
  const database = await openDatabase(file, agentMigrations)
  const log = await TaskLog.open(database, file)
  const at = { database, log, largeParts: new LargeParts(1000) } as unknown as SqliteContext
  return { database, log, at }
}

/** Lets the next sync of a file fail. */
async function failNextSync(): Promise<void> {
  await using handle = await open(`${file}-log.1`)
  const sync = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'datasync')
  sync.mockRejectedValueOnce(new Error('EIO'))
  onTestFinished(() => sync.mockRestore())
}

/** As in the permission model of Node. */
function withoutThreads(): void {
  Object.defineProperty(process, 'permission', { value: { has: () => false }, configurable: true })
  onTestFinished(() => void Reflect.deleteProperty(process, 'permission'))
}

test('a changed task enters the tables when a list is read', async () => {
  await using store = await openSqliteStore({ file })
  const record = await created(store)
  await store.commitTask(next(record, 'completed'))
  expect([rowsOf('tasks'), rowsOf('contexts')]).toEqual([0, 0])
  expect((await store.listTasks({ owner: alice, limit: 9 })).items).toHaveLength(1)
  expect([rowsOf('tasks'), rowsOf('contexts')]).toEqual([1, 1])
})

test('without further requests, a changed task enters the tables', async () => {
  await using store = await openSqliteStore({ file })
  await created(store)
  await expect.poll(() => rowsOf('tasks')).toBe(1)
})

test('writing continues after the log was idle', async () => {
  await using store = await openSqliteStore({ file })
  for (let task = 1; task <= 2; task += 1) {
    await created(store)
    await expect.poll(() => rowsOf('tasks')).toBe(task)
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
})

test('under load, tasks enter the tables in another thread, in parts, and none is lost', async () => {
  const thread = vi.spyOn(Worker.prototype, 'postMessage')
  onTestFinished(() => thread.mockRestore())
  await using store = await openSqliteStore({ file })
  await Promise.all(Array.from({ length: 1500 }, () => created(store)))
  await created(store)
  await expect.poll(() => rowsOf('tasks'), { interval: 1, timeout: 10_000 }).toBeGreaterThan(0)
  expect(thread).toHaveBeenCalled()
  await using second = await openSqliteStore({ file: await killed() })
  for (const one of [store, second]) expect(await one.countByState()).toEqual({ submitted: 1501 })
})

test('without threads, tasks enter the tables on the event loop', async () => {
  withoutThreads()
  await using store = await openSqliteStore({ file })
  await Promise.all(Array.from({ length: 1500 }, () => created(store)))
  await created(store)
  await expect.poll(() => rowsOf('tasks'), { interval: 1, timeout: 10_000 }).toBeGreaterThan(1000)
  expect(await store.countByState()).toEqual({ submitted: 1501 })
})

test('under constant load without threads, the log files remain small', async () => {
  withoutThreads()
  await using store = await openSqliteStore({ file })
  const artifacts = [artifactOf({ kind: 'text', text: 'x'.repeat(4000) })]
  const client = async () => {
    for (let task = 0; task < 20; task += 1) await created(store, { artifacts })
  }
  await Promise.all(Array.from({ length: 400 }, client))
  const sizes = ['1', '2'].map((number) => statSync(`${file}-log.${number}`).size)
  expect(Math.max(...sizes)).toBeLessThan(12 * 1024 * 1024)
  expect(await store.countByState()).toEqual({ submitted: 8000 })
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
  expect(rowsOf('tasks')).toBe(1)
  await expect(store.createTask(sampleRecord())).rejects.toThrow('The store is closed')
})

test('the next start moves what a killed process left in the log, in the order of creation', async () => {
  await using store = await openSqliteStore({ file })
  const [one, two] = [await created(store), await created(store)]
  const ended = next(one, 'completed')
  await store.commitTask(ended)
  const copy = await killed()
  expect(rowsOf('tasks', copy)).toBe(0)
  await using second = await openSqliteStore({ file: copy })
  expect(rowsOf('tasks', copy)).toBe(2)
  expect((await second.listTasks({ owner: alice, limit: 9 })).items).toEqual([two, ended])
  expect(await second.countByState()).toEqual({ submitted: 1, completed: 1 })
  const three = await created(second)
  expect((await second.listTasks({ owner: alice, limit: 1 })).items).toEqual([three])
})

test('a log that continues a later state of the database is rejected with a readable message', async () => {
  const store = await openSqliteStore({ file })
  await created(store)
  const earlier = path.join(folder, 'copy')
  using database = new DatabaseSync(file)
  database.prepare('VACUUM INTO ?').run(earlier)
  await store.countByState()
  // The record of the first task is no longer needed, and is overwritten.
  await store.ping()
  await created(store)
  const copy = await killed()
  await store[Symbol.asyncDispose]()
  await cp(earlier, copy)
  await rm(`${copy}-wal`)
  await expect(openSqliteStore({ file: copy })).rejects.toThrow('continues a later state')
  for (const name of ['1', '2']) await rm(`${copy}-log.${name}`)
  await using restored = await openSqliteStore({ file: copy })
  expect(await restored.countByState()).toEqual({})
})

test('a migration to another store reads what a killed process left in the log', async () => {
  await using store = await openSqliteStore({ file })
  const { id } = await created(store)
  await using source = await openSource(await killed(), agentMigrations)
  expect(source.database.statement('SELECT id FROM tasks').all()).toEqual([{ id }])
})

test('an upgrade keeps the tasks that a killed process left in the log of earlier versions', async () => {
  const largeParts = new LargeParts(100_000)
  /** The columns and the body, as in the earlier log. */
  const logged = (record: TaskRecord, seq: number) => {
    const { body, ...row } = encodeTask({ largeParts } as unknown as SqliteContext, record).row
    const { id, owner, context_id, context_name, state, status_time, created_at, updated_at, version } = row
    const before = [seq, id, owner, context_id, context_name, state, status_time, created_at, updated_at]
    return [[...before, version, row.lease_holder, row.lease_until, row.due_at, row.large], JSON.parse(body)]
  }
  const stored = sampleRecord({ contextName: 'n' })
  const changed = next(stored, 'completed')
  const added = sampleRecord({ contextId: stored.contextId, lease: { holder: 'h', until: 10 } })
  const ended = next(sampleRecord(), 'failed')
  {
    await using older = await openDatabase(file, agentMigrations.slice(0, -1))
    const [[columns, body]] = [logged(stored, 1)]
    const insert = `INSERT INTO tasks (seq, id, owner, context_id, state, status_time, created_at, updated_at, version, large,
      body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`
    const [seq, id, owner, context, , state, status, at, updated, version] = columns
    const rows = [
      [...logged(stored, 1), ...logged(sampleRecord({ id: ended.id, contextId: ended.contextId }), 3)],
      [...logged(changed, 1), ...logged(added, 2)],
      logged(ended, 3),
    ]
    await older.write(() => {
      older
        .statement(insert)
        .run(seq, id, owner, context, state, status, at, updated, version, JSON.stringify(body))
      older.statement('INSERT INTO contexts VALUES (?, ?, ?, ?, 1, ?)').run(context, owner, at, at, 'n')
      const log = older.statement('INSERT INTO task_log (body) VALUES (?)')
      for (const row of rows) log.run(JSON.stringify(row))
    })
  }
  await using store = await openSqliteStore({ file })
  expect((await store.listTasks({ owner: alice, limit: 9 })).items).toEqual([ended, added, changed])
  expect(await store.countByState()).toEqual({ completed: 1, submitted: 1, failed: 1 })
  expect((await store.listContexts({ owner: alice, limit: 9 })).items).toMatchObject([
    { id: ended.contextId, taskCount: 1 },
    { id: stored.contextId, name: 'n', taskCount: 2 },
  ])
})

test('a migration to another store is refused if the tasks of the log cannot enter the tables', async () => {
  await using store = await openSqliteStore({ file })
  await created(store)
  const copy = await killed()
  {
    using other = new DatabaseSync(copy)
    other.exec(
      "CREATE TRIGGER fails AFTER UPDATE ON task_log_position BEGIN SELECT raise(ABORT, 'full'); END",
    )
  }
  await expect(openSource(copy, agentMigrations)).rejects.toThrow('full')
})

test('a migration to another store is refused if a killed process of an earlier version left tasks in its log', async () => {
  {
    await using older = await openDatabase(file, agentMigrations.slice(0, -1))
    await older.write(() => older.statement("INSERT INTO task_log (body) VALUES ('[]')").run())
  }
  await expect(openSource(file, agentMigrations)).rejects.toThrow('Start and stop its agent once')
})

test('a log of another database is rejected with the names of its files', async () => {
  {
    await using store = await openSqliteStore({ file })
    await created(store)
  }
  await rm(file)
  await expect(openSqliteStore({ file })).rejects.toThrow(`delete these two files`)
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

test('a context is as old as its oldest task, also if that one changes last', async () => {
  await using store = await openSqliteStore({ file })
  const first = await created(store, { createdAt: '2026-01-01T00:00:00.000000+00:00' })
  await created(store, { contextId: first.contextId, createdAt: '2026-01-02T00:00:00.000000+00:00' })
  await store.commitTask(next(first, 'completed'))
  const { items } = await store.listContexts({ owner: alice, limit: 9 })
  expect(items).toMatchObject([{ createdAt: first.createdAt, taskCount: 2 }])
})

test('a task that the tables cannot store is refused, and the others are written', async () => {
  await using store = await openSqliteStore({ file })
  const writes = await Promise.allSettled([
    store.createTask(sampleRecord()),
    store.createTask(sampleRecord({ version: Number.NaN })),
    store.createTask(sampleRecord()),
  ])
  expect(writes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(writes[1]).toMatchObject({ reason: expect.any(TypeError) })
  expect(await store.countByState()).toEqual({ submitted: 2 })
})

test('large tasks that are written at the same time are divided among records of the log', async () => {
  await using store = await openSqliteStore({ file })
  const text = 'x'.repeat(900_000)
  const records = Array.from({ length: 12 }, () => {
    const { history, ...record } = sampleRecord()
    return {
      ...record,
      history: history.map((message) => ({ ...message, parts: [{ kind: 'text' as const, text }] })),
    }
  })
  await Promise.all(records.map((record) => store.createTask(record)))
  await using second = await openSqliteStore({ file: await killed() })
  for (const record of records) expect(await second.loadTask(record.id)).toEqual(record)
})

test('the second of two changes of a task at the same time fails', async () => {
  await using store = await openSqliteStore({ file })
  const record = await created(store)
  const changes = ['completed', 'failed'] as const
  expect(await Promise.all(changes.map((state) => store.commitTask(next(record, state))))).toEqual([
    true,
    false,
  ])
  expect(await store.loadTask(record.id)).toMatchObject({ status: { state: 'completed' } })
})

test('when the second of two changes of a task fails, the first one is visible', async () => {
  await using store = await openSqliteStore({ file })
  const record = sampleRecord()
  const first = store.createTask(record)
  expect(await store.createTask(record)).toBe(false)
  expect(await store.loadTask(record.id)).toEqual(record)
  const [completed, failed] = [next(record, 'completed'), next(record, 'failed')]
  const second = store.commitTask(completed)
  expect(await store.commitTask(failed)).toBe(false)
  expect(await store.loadTask(record.id)).toEqual(completed)
  expect(await Promise.all([first, second])).toEqual([true, true])
})

test('the context of a task with a generated id still belongs to one owner', async () => {
  await using store = await openSqliteStore({ file })
  const record = await created(store)
  const other = sampleRecord({ owner: bob, contextId: record.contextId })
  await expect(store.createTask(other, { task: true })).rejects.toMatchObject({ error: 'ContextNotFound' })
  expect(await store.createTask(sampleRecord(), { task: true, context: true })).toBe(true)
  expect(await store.createTask(record, { context: true })).toBe(false)
})

test('a change succeeds if one at the same time was not stored', async () => {
  await using store = await openSqliteStore({ file })
  const record = sampleRecord()
  await failNextSync()
  const created = await Promise.allSettled([store.createTask(record), store.createTask(record)])
  expect(created).toMatchObject([{ reason: { error: 'Unavailable' } }, { value: true }])
  await failNextSync()
  const changes = [next(record, 'completed'), next(record, 'failed')]
  const changed = await Promise.allSettled(changes.map((change) => store.commitTask(change)))
  expect(changed).toMatchObject([{ reason: { error: 'Unavailable' } }, { value: true }])
  expect(await store.loadTask(record.id)).toEqual(changes[1])
})

test('a change is not visible before it is durable', async () => {
  await using store = await openSqliteStore({ file })
  const record = await created(store)
  const change = store.commitTask(next(record, 'completed'))
  expect(await store.loadTask(record.id)).toEqual(record)
  await change
  expect(await store.loadTask(record.id)).toMatchObject({ status: { state: 'completed' } })
})

test('if two owners create the same context at the same time, the second is rejected', async () => {
  await using store = await openSqliteStore({ file })
  const record = sampleRecord()
  const other = sampleRecord({ owner: bob, contextId: record.contextId })
  const [mine, theirs] = await Promise.allSettled([store.createTask(record), store.createTask(other)])
  expect(mine).toMatchObject({ value: true })
  expect(theirs).toMatchObject({ reason: { error: 'ContextNotFound' } })
  expect(await store.isAnothersContext(record.contextId, bob)).toBe(true)
  expect(await store.isAnothersContext(record.contextId, alice)).toBe(false)
})

test('writes that the disk does not confirm are rejected, and the next ones are durable again', async () => {
  await using store = await openSqliteStore({ file })
  const record = await created(store)
  await failNextSync()
  const [first, second] = await Promise.allSettled([
    store.commitTask(next(record, 'working')),
    store.createTask(sampleRecord()),
  ])
  for (const outcome of [first, second]) expect(outcome).toMatchObject({ reason: { error: 'Unavailable' } })
  await expect(store.ping()).rejects.toMatchObject({ error: 'Unavailable' })
  expect(await store.loadTask(record.id)).toEqual(record)
  const changed = next(record, 'completed')
  expect(await store.commitTask(changed)).toBe(true)
  await using found = await openSqliteStore({ file: await killed() })
  expect((await found.listTasks({ owner: alice, limit: 9 })).items).toEqual([changed])
})

test('the large parts of a task are durable before the task', async () => {
  await using store = await openSqliteStore({ file, largePartBytes: 1000 })
  const record = await created(store)
  const artifacts = [artifactOf({ kind: 'text', text: 'x'.repeat(5000) })]
  const changed = next(record, 'completed', { artifacts })
  expect(await store.commitTask(changed)).toBe(true)
  await using found = await openSqliteStore({ file: await killed(), largePartBytes: 1000 })
  expect(await found.loadTask(record.id)).toEqual(changed)
})

test('a removed task does not return from the log', async () => {
  await using store = await openSqliteStore({ file })
  const record = await createdIn(store, 'completed')
  await Promise.all([store.removeEnded('9999', 10), created(store)])
  await store.clearContext(record.contextId, alice)
  await using second = await openSqliteStore({ file: await killed() })
  expect(await second.loadTask(record.id)).toBeUndefined()
})

test('retention keeps a task and a context that change at the same time', async () => {
  const store = await openSqliteStore({ file })
  const record = await createdIn(store, 'completed', { contextName: 'n' })
  await store[Symbol.asyncDispose]()
  const { database, at } = await opened()
  const changed = next(record, 'completed')
  const added = sampleRecord({ contextId: record.contextId })
  const removed = Promise.all([commitTask(at, changed), createTask(at, added), removeEnded(at, '9999', 10)])
  expect(await removed).toEqual([true, true, 0])
  await database[Symbol.asyncDispose]()
  await using second = await openSqliteStore({ file })
  expect((await second.listTasks({ owner: alice, limit: 9 })).items).toEqual([added, changed])
  expect(await second.findContext(record.contextId, alice)).toMatchObject({ name: 'n' })
})

test('retention keeps a context that gets a new task at the same time', async () => {
  const store = await openSqliteStore({ file })
  const { contextId } = await createdIn(store, 'completed', { contextName: 'n' })
  await store[Symbol.asyncDispose]()
  const { database, at } = await opened()
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
  expect([rowsOf('tasks'), rowsOf('contexts')]).toEqual([0, 0])
})

test('leases are renewed in the log and in the tables', async () => {
  await using store = await openSqliteStore({ file })
  const lease = { holder: 'h', until: 10 }
  const stored = await created(store, { lease, contextName: 'n' })
  await store.countByState()
  const logged = await created(store, { lease })
  expect(await store.renewLeases('h', [stored.id, logged.id], 20)).toEqual([])
  for (const { id } of [stored, logged]) expect((await store.loadTask(id))?.lease?.until).toBe(20)
  // The record was read before its lease was extended.
  await store.commitTask(next(logged, 'working'))
  expect((await store.loadTask(logged.id))?.lease?.until).toBe(20)
  expect(await store.countByState()).toEqual({ submitted: 1, working: 1 })
  expect((await store.loadTask(stored.id))?.lease?.until).toBe(20)
  expect(await store.findContext(stored.contextId, alice)).toMatchObject({ name: 'n' })
})

test('lists include logged tasks even if the tables cannot be written', async () => {
  await using store = await openSqliteStore({ file })
  const record = await created(store)
  using other = new DatabaseSync(file)
  other.exec(
    "CREATE TRIGGER fails AFTER UPDATE ON task_log_position WHEN new.position > 0 BEGIN SELECT raise(ABORT, 'full'); END",
  )
  expect((await store.listTasks({ owner: alice, limit: 9 })).items).toEqual([record])
  expect(rowsOf('tasks')).toBe(0)
  other.exec('DROP TRIGGER fails')
  expect((await store.listTasks({ owner: alice, limit: 9 })).items).toEqual([record])
  expect(rowsOf('tasks')).toBe(1)
})
