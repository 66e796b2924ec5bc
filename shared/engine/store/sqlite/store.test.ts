import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { type Part, taskStates } from '@parley/wire/model/task'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { alice, artifactOf, created, createdIn, next, sampleRecord } from '../sample-record.cases.ts'
import { storeCases } from '../store.cases.ts'
import type { Store, TaskQuery, TaskRecord } from '../store.ts'
import { badInputCases } from '../store-bad-input.cases.ts'
import { samplePayment } from '../store-payments.cases.ts'
import { openPushConfigCases, samplePushConfig, webhookStoreCases } from '../store-webhooks.cases.ts'
import { agentMigrations } from './schema.ts'
import { openSqliteStore } from './store.ts'

const folders: string[] = []

async function newFile(): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-store-'))
  folders.push(folder)
  return path.join(folder, 'agent.db')
}

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true })
})

storeCases('the embedded store', async (options = {}) =>
  openSqliteStore({ file: await newFile(), largePartBytes: 1000, ...options }),
)

badInputCases(async () => openSqliteStore({ file: await newFile(), largePartBytes: 1000 }))

const openWebhooks = async () => {
  const store = await openSqliteStore({ file: await newFile() })
  return Object.assign(store.webhooks, { [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() })
}
webhookStoreCases('the embedded store', openWebhooks)
openPushConfigCases(openWebhooks)

test.each([
  ['cleared', (store: Store, { contextId }: TaskRecord) => store.clearContext(contextId, alice)],
  ['too old', (store: Store) => store.removeEnded('9999', 10)],
])('the push configs of a task that is %s are removed', async (_how, remove) => {
  await using store = await openSqliteStore({ file: await newFile() })
  const record = await createdIn(store, 'completed')
  const config = samplePushConfig({ task: record })
  await store.webhooks.savePushConfig(config, 5)
  await remove(store, record)
  expect(await store.webhooks.listPushConfigs(record)).toEqual([])
})

test('tasks and cursors survive a restart', async () => {
  const file = await newFile()
  const first = await openSqliteStore({ file })
  const [one, two] = [await createdIn(first, 'completed'), await created(first)]
  const page = await first.listTasks({ owner: alice, limit: 1 })
  await first[Symbol.asyncDispose]()
  await using second = await openSqliteStore({ file })
  expect(page.items).toEqual([two])
  const cursor = page.nextCursor ?? ''
  expect(await second.listTasks({ owner: alice, limit: 1, cursor })).toEqual({ items: [one] })
  expect(await second.countByState()).toEqual({ completed: 1, submitted: 1 })
})

test('a file of an earlier version opens unchanged, and its tasks are listed by the time of their status', async () => {
  const file = await newFile()
  const older = await openDatabase(file, agentMigrations.slice(0, 4))
  const insert = `INSERT INTO tasks (id, owner, context_id, state, created_at, updated_at, version, large, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)`
  const records = ['completed', 'working', 'failed'].map((state, index) => {
    const at = `2026-01-0${3 - index}T00:00:00.000000+00:00`
    const status = { state: state as TaskRecord['status']['state'], timestamp: at }
    // The last change of an ended task need not be that of its status.
    return sampleRecord({
      status,
      createdAt: `2025-01-0${index + 1}T00:00:00.000000+00:00`,
      updatedAt: '2027',
    })
  })
  await older.write(() => {
    for (const { id, owner, contextId, createdAt, updatedAt, version, ...body } of records) {
      const state = body.status.state
      older
        .statement(insert)
        .run(id, owner, contextId, state, createdAt, updatedAt, version, JSON.stringify(body))
      older
        .statement('INSERT INTO contexts VALUES (?, ?, ?, ?, 1)')
        .run(contextId, owner, createdAt, createdAt)
    }
  })
  await older[Symbol.asyncDispose]()
  await using store = await openSqliteStore({ file })
  const list = (more: Partial<TaskQuery> = {}) =>
    store.listTasks({ owner: alice, limit: 9, order: 'status', count: true, ...more })
  expect(await list()).toEqual({ items: records, total: 3 })
  expect(await store.listTasks({ owner: alice, limit: 9 })).toEqual({ items: records.toReversed() })
  const statusSince = records[1]?.status.timestamp ?? ''
  expect(await list({ statusSince })).toEqual({ items: records.slice(0, 2), total: 2 })
  const [, working, failed] = records as [TaskRecord, TaskRecord, TaskRecord]
  const changed = next(working, 'completed')
  expect(await store.commitTask(changed)).toBe(true)
  await created(store, { contextId: failed.contextId, contextName: 'n' })
  expect((await list({ states: ['completed'] })).items).toEqual([changed, records[0]])
  expect(await store.findContext(failed.contextId, alice)).not.toHaveProperty('name')
})

test('a large part is written once for all commits of its task, and is removed with the task', async () => {
  const file = await newFile()
  await using store = await openSqliteStore({ file, largePartBytes: 1000 })
  using reader = new DatabaseSync(file, { readOnly: true })
  const rows = () => reader.prepare('SELECT rowid, length(body) AS length FROM parts').all()
  const text = 'x'.repeat(5000)
  const record = await created(store, { artifacts: [artifactOf({ kind: 'text', text })] })
  const written = rows()
  expect(written).toHaveLength(1)
  const again = artifactOf({ kind: 'text', text })
  await store.commitTask(next(record, 'working', { artifacts: [...record.artifacts, again] }))
  const found = await store.loadTask(record.id)
  await store.commitTask(next(found ?? record, 'completed'))
  expect(rows()).toEqual(written)
  // A list moves the task from the log into the table.
  await store.listTasks({ owner: alice, limit: 1 })
  const bodies = reader.prepare('SELECT length(body) AS length FROM tasks').all()
  expect(Number(bodies[0]?.['length'])).toBeLessThan(2000)
  await store.clearContext(record.contextId, alice)
  expect(rows()).toEqual([])
})

test.each<[string, Part]>([
  ['text', { kind: 'text', text: 'x'.repeat(5000) }],
  ['file', { kind: 'file', file: { name: 'a', bytes: 'x'.repeat(5000) } }],
  ['data', { kind: 'data', data: { rows: Array.from({ length: 1000 }, () => 1) } }],
  ['metadata', { kind: 'text', text: 'x', metadata: { note: 'x'.repeat(5000) } }],
])('only a part with large %s is stored separately', async (_title, part) => {
  const file = await newFile()
  await using store = await openSqliteStore({ file, largePartBytes: 1000 })
  using reader = new DatabaseSync(file, { readOnly: true })
  await created(store, { artifacts: [artifactOf({ kind: 'text', text: 'x'.repeat(900) }, part)] })
  expect(reader.prepare('SELECT body FROM parts').all()).toEqual([{ body: JSON.stringify(part) }])
})

test('a part that looks like an internal reference is rejected', async () => {
  await using store = await openSqliteStore({ file: await newFile() })
  const part = { kind: 'stored', hash: 'x' } as unknown as Part
  await expect(created(store, { artifacts: [artifactOf(part)] })).rejects.toThrow('kind "stored"')
})

test('the parts of a removed task are removed', async () => {
  const file = await newFile()
  await using store = await openSqliteStore({ file, largePartBytes: 1000 })
  using reader = new DatabaseSync(file, { readOnly: true })
  await createdIn(store, 'completed', { artifacts: [artifactOf({ kind: 'text', text: 'x'.repeat(5000) })] })
  expect(await store.removeEnded('9999', 10)).toBe(1)
  expect(reader.prepare('SELECT * FROM parts').all()).toEqual([])
  expect(reader.prepare('SELECT * FROM contexts').all()).toEqual([])
})

test('retention removes expired keys even if no task is old enough to be removed', async () => {
  const file = await newFile()
  await using store = await openSqliteStore({ file, clock: () => 1000 })
  using reader = new DatabaseSync(file, { readOnly: true })
  for (const expiresAt of [999, 1000, 1001]) {
    await store.claimIdempotencyKey({
      owner: alice,
      key: `k${expiresAt}`,
      bodyHash: 'h',
      taskId: 't',
      expiresAt,
    })
  }
  expect(await store.removeEnded('', 100)).toBe(0)
  expect(reader.prepare('SELECT key FROM idempotency_keys').all()).toEqual([{ key: 'k1001' }])
})

async function askEverythingOfPayments({ payments }: Store): Promise<void> {
  const record = samplePayment({ nonceKey: 'n', purpose: 'p', taskId: 't', captureToken: 'c', dueAt: 1 })
  await payments.addPayment(record)
  await payments.commitPayment({ ...record, version: 1 })
  await payments.findPayment(record.id, alice)
  await payments.loadPayment(record.id)
  await payments.findByNonce('n')
  await payments.findByPurpose('p')
  await payments.findByCapture('c')
  await payments.listOfTask('t')
  await payments.listByState({ state: 'open', limit: 1 })
  await payments.listDuePayments(1, 1)
  await payments.countOpen(alice)
  await payments.countPaymentsByState()
  await payments.removeUnpaid('9999', 1)
  await payments.removePayment(record.id, 1)
  await payments.moveTestMoney({ nonceKey: 'n', purse: 'p', atomic: 1n, txHash: '0x', filledWith: 1n })
  await payments.findTestTransfer('n')
  await payments.testPurse('p', 1n)
}

test('no query of the port scans a table', async () => {
  const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare')
  onTestFinished(() => prepare.mockRestore())
  const file = await newFile()
  await using store = await openSqliteStore({ file, largePartBytes: 1000 })
  const artifacts = [artifactOf({ kind: 'text', text: 'x'.repeat(5000) })]
  const { id, contextId } = await createdIn(store, 'completed', {
    artifacts,
    lease: { holder: 'h', until: 1 },
  })
  await store.findTask(id, alice)
  await store.listUnfinished(0, 'h')
  await store.listDue(0, 1)
  await store.renewLeases('h', [id], 1)
  await store.countByState()
  for (const state of [undefined, ...taskStates]) {
    const byState = state === undefined ? {} : { states: [state, 'failed' as const] }
    await store.listTasks({ owner: alice, limit: 1, ...byState })
    await store.listTasks({ owner: alice, limit: 1, contextId, ...byState })
    for (const since of [{}, { statusSince: '2026' }]) {
      const query = { owner: alice, limit: 1, ...byState, order: 'status' as const, count: true, ...since }
      await store.listTasks(query)
      await store.listTasks({ ...query, contextId })
    }
  }
  for (const query of [
    {},
    { owner: alice },
    { contextId },
    { states: ['failed' as const], since: '2026', until: '2027' },
  ])
    await store.listAllTasks({ ...query, limit: 1 })
  await store.findContext(contextId, alice)
  await store.listContexts({ owner: alice, limit: 1 })
  await store.contextHistory(contextId, alice, 1)
  await store.claimIdempotencyKey({ owner: alice, key: 'k', bodyHash: 'h', taskId: id, expiresAt: 1 })
  await store.saveFeedback({ taskId: id, owner: alice, feedback: 'f', at: 't' })
  await store.findFeedback(id, alice)
  const task = { id, owner: alice, createdAt: '' }
  const config = samplePushConfig({ task })
  await store.webhooks.savePushConfig(config, 1)
  await store.webhooks.savePushConfig(config, 1)
  await store.webhooks.findPushConfig(task, config.id)
  await store.webhooks.listPushConfigs(task)
  await store.webhooks.settlePushConfig(config, { settled: 1, open: true, health: config.health })
  await store.webhooks.listOpenPushConfigs({ limit: 1 })
  await store.webhooks.removePushConfig(task, config.id)
  await store.isAnothersContext(contextId, alice)
  await askEverythingOfPayments(store)
  await store.removeEnded('9999', 1)
  await createdIn(store, 'completed', { contextId })
  await store.clearContext(contextId, alice)

  const asked = prepare.mock.calls
    .map(([sql]) => sql)
    .filter((sql) => /^(SELECT|UPDATE|DELETE|INSERT)/.test(sql))
  using reader = new DatabaseSync(file, { readOnly: true })
  const plans = [...new Set(asked)].map((sql) => {
    const steps = reader.prepare(`EXPLAIN QUERY PLAN ${sql}`).all()
    return { sql, plan: steps.map((step) => String(step['detail'])) }
  })
  expect(plans.length).toBeGreaterThan(30)
  const scans = plans.filter(({ plan }) =>
    plan.some((step) => /SCAN (?!ended_counts|cursor_key|task_log|CONSTANT ROW)/.test(step)),
  )
  expect(scans).toEqual([])
  // A sort would have to read every row first.
  const sorted = plans.filter(({ plan }) => plan.some((step) => step.includes('TEMP B-TREE')))
  // Open tasks of all owners are few.
  const ofOpen = sorted.filter(({ plan }) =>
    plan[0]?.includes('USING INDEX tasks_open_of_owner (open_state=?)'),
  )
  expect(ofOpen).toHaveLength(1)
  expect(sorted).toEqual(ofOpen)
})
