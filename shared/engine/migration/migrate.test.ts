import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { connectMongodb } from '@parley/kit/database/mongodb/database'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openMongodbStore } from '../store/mongodb/store.ts'
import { alice, artifactOf, bob, created, createdIn } from '../store/sample-record.cases.ts'
import { openSqliteStore } from '../store/sqlite/store.ts'
import type { Store, TaskRecord } from '../store/store.ts'
import { samplePayment } from '../store/store-payments.cases.ts'
import { samplePushConfig } from '../store/store-webhooks.cases.ts'
import type { Progress } from './copy.ts'
import { agentPart, type MigrateOptions, migrate } from './migrate.ts'

const signature = Buffer.alloc(64, 7)
const late = Date.now() + 3_600_000

/** Stores an example of every kind of record that an agent keeps. */
async function fill(store: Store): Promise<{ tasks: TaskRecord[]; old: string }> {
  const text = 'x'.repeat(400_000)
  const tasks = [
    await createdIn(store, 'completed', { artifacts: [artifactOf({ kind: 'text', text })] }),
    await created(store, { owner: bob, lease: { holder: 'died', until: late } }),
    await createdIn(store, 'working', { lease: { holder: 'died', until: late } }),
    await createdIn(store, 'input-required', { dueAt: 5 }),
  ]
  const [first] = tasks as [TaskRecord]
  for (let count = 0; count < 4; count += 1) {
    tasks.push(
      await createdIn(store, count % 2 === 0 ? 'completed' : 'failed', { contextId: first.contextId }),
    )
  }
  const removed = await createdIn(store, 'canceled')
  await store.clearContext(removed.contextId, alice)
  await store.claimIdempotencyKey({
    owner: alice,
    key: 'k',
    bodyHash: 'h',
    taskId: first.id,
    expiresAt: late,
  })
  await store.saveFeedback({
    taskId: first.id,
    owner: alice,
    feedback: 'good',
    rating: 5,
    at: first.createdAt,
  })
  await store.takeSignature('did:x', signature, late)
  await store.webhooks.savePushConfig(samplePushConfig({ task: first, id: 'a', token: 's' }), 5)
  await store.webhooks.savePushConfig(samplePushConfig({ task: first, id: 'b' }), 5)
  await store.payments.addPayment(
    samplePayment({ id: 'p1', nonceKey: 'n', purpose: 'task', taskId: first.id, dueAt: 5 }),
  )
  await store.payments.addPayment(
    samplePayment({ id: 'p2', kind: 'session', state: 'open', captureToken: 'c' }),
  )
  await store.payments.moveTestMoney({
    nonceKey: 'n',
    purse: 'p',
    atomic: 40n,
    txHash: '0x1',
    filledWith: 100n,
  })
  return { tasks, old: removed.id }
}

describe.skipIf(!hasMongodb)('migrating an embedded store (needs mongod)', () => {
  let server: MongodbServer
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  async function source() {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-migrate-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const file = path.join(folder, 'agent.db')
    const store = await openSqliteStore({ file })
    const filled = await fill(store)
    const agentId = randomUUID()
    const url = server.newUrl()
    const run = (options: Partial<MigrateOptions> = {}) =>
      migrate([agentPart({ name: 'a', agentId, file })], { url, ...options })
    return { ...filled, file, store, agentId, url, run, close: () => store[Symbol.asyncDispose]() }
  }

  test('copies tasks with events and large parts, contexts, configs, ledger, keys, feedback, signatures and counts', async () => {
    const { tasks, store, agentId, url, run, close } = await source()
    const counts = await store.countByState()
    const lists = [
      await store.listTasks({ owner: alice, limit: 50 }),
      await store.listContexts({ owner: alice, limit: 50 }),
    ]
    const payments = await store.payments.listByState({ state: 'claimed', limit: 5 })
    const configs = await store.webhooks.listPushConfigs(tasks[0] as TaskRecord)
    const page = await store.listContexts({ owner: alice, limit: 1 })
    await close()
    const [report] = await run()
    expect(report).toMatchObject({ state: 'migrated', rows: { tasks: 8, feedback: 1, payments: 2 } })
    expect(report?.verified['tasks']).toEqual({ count: 8, checksum: expect.stringMatching(/^[0-9a-f]{64}$/) })
    await using target = await openMongodbStore({ url, agentId })
    expect(await target.countByState()).toEqual(counts)
    const found = await target.listTasks({ owner: alice, limit: 50 })
    const ended = { holder: 'died', until: 0 }
    const expected = ((lists[0]?.items ?? []) as TaskRecord[]).map((task) => ({
      ...task,
      ...(task.lease && { lease: ended }),
    }))
    expect(found.items).toEqual(expected)
    expect((await target.listContexts({ owner: alice, limit: 50 })).items).toEqual(lists[1]?.items)
    expect(await target.payments.listByState({ state: 'claimed', limit: 5 })).toEqual(payments)
    expect(await target.webhooks.listPushConfigs(tasks[0] as TaskRecord)).toEqual(configs)
    const [first, second] = tasks as [TaskRecord, TaskRecord]
    expect(await target.findFeedback(first.id, alice)).toMatchObject({ feedback: 'good', rating: 5 })
    expect(await target.takeSignature('did:x', signature, late)).toBe(false)
    const key = { owner: alice, key: 'k', bodyHash: 'other', taskId: 't', expiresAt: late }
    expect(await target.claimIdempotencyKey(key)).toMatchObject({ bodyHash: 'h', taskId: first.id })
    expect(await target.payments.addPayment(samplePayment({ nonceKey: 'n' }))).toBe('nonce')
    expect(await target.payments.addPayment(samplePayment({ purpose: 'task' }))).toBe('purpose')
    expect(await target.payments.findByCapture('c')).toMatchObject({ id: 'p2' })
    expect(await target.payments.testPurse('p', 100n)).toBe(60n)
    expect(await target.payments.findTestTransfer('n')).toMatchObject({ atomic: 40n })
    const left = await target.listUnfinished(Date.now(), 'me')
    expect(left.map(({ id, leased }) => [id, leased])).toContainEqual([second.id, true])
    expect(await target.listDue(10, 5)).toEqual([tasks[3]?.id])
    // This list accepts a cursor from before the migration.
    const cursor = page.nextCursor ?? ''
    const rest = await target.listContexts({ owner: alice, limit: 50, cursor })
    expect([...page.items, ...rest.items]).toEqual(lists[1]?.items)
  })

  test('rejects a task cursor from before the migration', async () => {
    const { store, agentId, url, run, close } = await source()
    const { nextCursor: cursor = '' } = await store.listTasks({ owner: alice, limit: 1 })
    await close()
    await run()
    await using target = await openMongodbStore({ url, agentId })
    await expect(target.listTasks({ owner: alice, limit: 1, cursor })).rejects.toMatchObject({ code: -32602 })
  })

  test('resumes an interrupted migration without duplicates, and servers refuse the database until it is complete', async () => {
    const { agentId, url, run, close } = await source()
    await close()
    const stop = new AbortController()
    const onProgress = () => stop.abort(new Error('stopped'))
    // The migration stops after the first batch of the first kind.
    await expect(run({ signal: stop.signal, onProgress })).rejects.toThrow('stopped')
    await expect(openMongodbStore({ url, agentId })).rejects.toThrow('is not finished')
    expect(await run()).toMatchObject([{ state: 'migrated' }])
    expect(await run()).toMatchObject([{ state: 'already' }])
    await using target = await openMongodbStore({ url, agentId })
    expect((await target.listTasks({ owner: alice, limit: 50 })).items).toHaveLength(7)
  })

  test('detects a source that changed between two runs, and starts over with --restart', async () => {
    const { file, run, close } = await source()
    await close()
    const stop = new AbortController()
    const onProgress = () => stop.abort(new Error('stopped'))
    await expect(run({ signal: stop.signal, onProgress })).rejects.toThrow('stopped')
    const again = await openSqliteStore({ file })
    await createdIn(again, 'completed')
    await again.clearContext(
      (await again.listTasks({ owner: alice, limit: 1 })).items[0]?.contextId ?? '',
      alice,
    )
    const [changed] = (await again.listTasks({ owner: alice, limit: 9, states: ['input-required'] })).items
    const status = { state: 'canceled' as const, timestamp: 't' }
    await again.commitTask({ ...(changed as TaskRecord), status, version: (changed?.version ?? 0) + 1 })
    await again[Symbol.asyncDispose]()
    await expect(run()).rejects.toThrow('differ in their checksum')
    expect(await run({ restart: true })).toMatchObject([{ state: 'migrated', rows: { tasks: 8 } }])
  })

  test('detects a changed document in the target', async () => {
    const { url, run, close } = await source()
    await close()
    await using database = await connectMongodb({ url })
    const tasks = database.db.collection('tasks')
    const stop = new AbortController()
    const onProgress = (_agent: string, { kind, done, total }: Progress) => {
      if (kind === 'tasks' && done === total) stop.abort()
    }
    await expect(run({ onProgress, signal: stop.signal })).rejects.toThrow('aborted')
    expect((await tasks.updateMany({}, { $set: { body: '{}' } })).modifiedCount).toBe(8)
    await expect(run()).rejects.toThrow('differ in their checksum')
  })

  test('a dry run reports the rows and writes nothing', async () => {
    const { url, run, close } = await source()
    await close()
    expect(await run({ dryRun: true })).toMatchObject([
      { state: 'would migrate', rows: { tasks: 8, contexts: 4 } },
    ])
    await using database = await connectMongodb({ url })
    expect(await database.db.listCollections().toArray()).toEqual([])
  })

  test('rejects a source in use, a newer source and a newer target without changing them', async () => {
    const { file, url, run, close } = await source()
    await expect(run()).rejects.toThrow('is open in another process')
    await close()
    await using database = await connectMongodb({ url })
    const schema = database.db.collection<{ _id: string; version: number }>('schema')
    await schema.insertOne({ _id: 'agent_store', version: 99 })
    await expect(run()).rejects.toThrow('newer Parley (schema 99')
    expect((await database.db.listCollections().toArray()).map(({ name }) => name)).toEqual(['schema'])
    await schema.deleteMany({})
    const newer = new DatabaseSync(file)
    newer.exec('PRAGMA user_version = 99')
    newer.close()
    await expect(run()).rejects.toThrow('newer Parley (schema 99')
  })

  test('copies nothing if one source is refused', async () => {
    const [one, other] = [await source(), await source()]
    for (const { close } of [one, other]) await close()
    const { url } = one
    const used = await openMongodbStore({ url, agentId: other.agentId })
    await created(used)
    await used[Symbol.asyncDispose]()
    const parts = [one, other].map(({ agentId, file }) => agentPart({ name: agentId, agentId, file }))
    await expect(migrate(parts, { url })).rejects.toThrow('that no migration copied')
    await using target = await openMongodbStore({ url, agentId: one.agentId })
    expect(await target.countByState()).toEqual({})
  })

  test('rejects a target that the agent has already used', async () => {
    const { agentId, url, run, close } = await source()
    await close()
    await using target = await openMongodbStore({ url, agentId })
    await expect(target.ping()).resolves.toBeUndefined()
    await created(target)
    await expect(run()).rejects.toThrow('that no migration copied')
  })
})
