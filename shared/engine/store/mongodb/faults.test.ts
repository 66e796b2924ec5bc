import { randomUUID } from 'node:crypto'
import { createServer } from 'node:net'
import { DatabaseRefused } from '@parley/kit/database/errors'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { Collection, MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { alice, artifactOf, bob, created, createdIn, next, sampleRecord } from '../sample-record.cases.ts'
import type { TaskRecord } from '../store.ts'
import { samplePayment } from '../store-payments.cases.ts'
import { openMongodbStore } from './store.ts'

const agentId = 'a1'

describe('an unusable MongoDB address is rejected at startup with a readable message', () => {
  test.each<[string, string, RegExp]>([
    [
      'without a database',
      'mongodb://alice:secret@127.0.0.1:1',
      /names no database.*mongodb:\/\/127\.0\.0\.1:1\/parley/,
    ],
    ['with a database but no host', 'mongodb:///parley', /must be like mongodb:\/\/host:27017\/database/],
    ['with an unknown option', 'mongodb://127.0.0.1:1/parley?nonsense=1', /cannot read|can read/],
    [
      'where no server is listening',
      'mongodb://alice:secret@127.0.0.1:1/parley',
      /127\.0\.0\.1:1 does not answer. Start it/,
    ],
  ])('%s', async (_title, url, sentence) => {
    const refused = await openMongodbStore({ url, agentId, connectTimeoutMs: 300 }).catch((error) => error)
    expect(refused).toBeInstanceOf(DatabaseRefused)
    expect(refused.message).toMatch(sentence)
    expect(refused.message).not.toContain('secret')
  })

  test('a server that accepts connections but never responds is rejected', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await new Promise((done) => silent.once('listening', done))
    const { port } = silent.address() as { port: number }
    const url = `mongodb://127.0.0.1:${port}/parley`
    await expect(openMongodbStore({ url, agentId, connectTimeoutMs: 300 })).rejects.toThrow('does not answer')
    silent.close()
  })
})

describe.skipIf(!hasMongodb)('faults of a MongoDB store (needs mongod)', () => {
  let server: MongodbServer
  let client: MongoClient
  let url = ''
  beforeAll(async () => {
    server = await startMongodb()
    url = server.newUrl()
    client = await MongoClient.connect(url)
  })
  afterAll(async () => {
    await client.close()
    await server[Symbol.asyncDispose]()
  })
  const documents = <T extends { _id: string }>(name: string) => client.db().collection<T>(name)
  const open = (given = {}) =>
    openMongodbStore({ url, agentId: randomUUID(), largePartBytes: 1000, ...given })

  test('a database from a newer version is rejected and left unchanged', async () => {
    const newer = server.newUrl()
    await using other = await MongoClient.connect(newer)
    await other
      .db()
      .collection<{ _id: string; version: number }>('schema')
      .insertOne({ _id: 'agent_store', version: 99 })
    const refused = openMongodbStore({ url: newer, agentId })
    await expect(refused).rejects.toThrow(DatabaseRefused)
    await expect(refused).rejects.toThrow(/was written by a newer Parley \(schema 99, this one knows \d+\)/)
    expect((await other.db().listCollections().toArray()).map(({ name }) => name)).toEqual(['schema'])
  })

  test('tasks of an earlier version are listed by the time of their status after the migration', async () => {
    const earlier = server.newUrl()
    const tasks: TaskRecord[] = []
    {
      await using store = await openMongodbStore({ url: earlier, agentId })
      for (let n = 0; n < 450; n += 1) tasks.unshift(await created(store))
      const changed = next(tasks.pop() ?? sampleRecord(), 'failed')
      await store.commitTask(changed)
      tasks.unshift(changed)
    }
    await using other = await MongoClient.connect(earlier)
    await other
      .db()
      .collection('tasks')
      .updateMany({}, { $unset: { status_position: '' } })
    const schema = other.db().collection<{ _id: string; version: number }>('schema')
    await schema.updateOne({ _id: 'agent_store' }, { $set: { version: 1 } })
    await using store = await openMongodbStore({ url: earlier, agentId })
    const page = await store.listTasks({ owner: alice, limit: 1000, order: 'status', count: true })
    expect(page.items.map(({ id }) => id)).toEqual(tasks.map(({ id }) => id))
    expect(page.total).toBe(450)
    expect(await schema.findOne({ _id: 'agent_store' })).toMatchObject({ version: 3 })
  })

  test('several processes can create the schema of a database concurrently', async () => {
    const fresh = server.newUrl()
    const stores = await Promise.all(
      ['one', 'two', 'three'].map((name) => openMongodbStore({ url: fresh, agentId: name })),
    )
    for (const store of stores) {
      const task = await createdIn(store, 'completed')
      expect(await store.countByState()).toEqual({ completed: 1 })
      expect((await store.listTasks({ owner: alice, limit: 9 })).items).toEqual([task])
      await store[Symbol.asyncDispose]()
    }
  })

  test('another agent in the same database sees no data and can use the same ids', async () => {
    await using one = await open()
    await using other = await open()
    const task = await createdIn(one, 'completed', {
      artifacts: [artifactOf({ kind: 'text', text: 'x'.repeat(5000) })],
    })
    expect(await other.loadTask(task.id)).toBeUndefined()
    expect(await other.findContext(task.contextId, alice)).toBeUndefined()
    expect(await other.createTask({ ...task, owner: bob, version: 0 })).toBe(true)
    expect(await other.clearContext(task.contextId, bob)).toBe('cleared')
    expect(await one.loadTask(task.id)).toEqual(task)
  })

  test('listUnfinished adds a task to its context if the process died before doing so', async () => {
    const id = randomUUID()
    await using store = await open({ agentId: id })
    const task = await created(store)
    await documents('contexts').deleteOne({ agent_id: id } as never)
    expect(await store.findContext(task.contextId, alice)).toBeUndefined()
    expect(await store.listUnfinished(Date.now(), 'me')).toMatchObject([
      { id: task.id, owner: alice, version: 0 },
    ])
    expect(await store.findContext(task.contextId, alice)).toMatchObject({ createdAt: task.createdAt })
  })

  test('listUnfinished removes such a task if its context belongs to another owner, because it was never acknowledged', async () => {
    const id = randomUUID()
    await using store = await open({ agentId: id })
    const task = await created(store)
    await documents<{ _id: string; owner: string }>('contexts').updateOne({ agent_id: id } as never, {
      $set: { owner: bob },
    })
    expect(await store.listUnfinished(Date.now(), 'me')).toEqual([])
    expect(await store.loadTask(task.id)).toBeUndefined()
  })

  test('a context accepts new tasks after a timeout if the process that was removing it died', async () => {
    const id = randomUUID()
    await using store = await open({ agentId: id })
    const old = await createdIn(store, 'completed')
    const mark = { $set: { leaving: 'of a dead process' } }
    await documents('contexts').updateOne({ agent_id: id } as never, mark)
    const task = sampleRecord({ contextId: old.contextId })
    expect(await store.createTask(task)).toBe(true)
    const contexts = (await store.listContexts({ owner: alice, limit: 9 })).items
    expect(contexts).toMatchObject([{ id: old.contextId, taskIds: [old.id, task.id] }])
  })

  test('contexts that are repeatedly cleared during task creation lose no task, and every task has its context', async () => {
    await using store = await open()
    const outcomes = new Set<string>()
    for (let round = 0; round < 15; round += 1) {
      const old = await createdIn(store, 'completed')
      const fresh = [1, 2, 3].map(() => sampleRecord({ contextId: old.contextId }))
      const [cleared] = await Promise.all([
        store.clearContext(old.contextId, alice),
        ...fresh.map((task) => store.createTask(task)),
      ])
      outcomes.add(cleared)
      const left = cleared === 'cleared' ? fresh : [old, ...fresh]
      const ids = left.map(({ id }) => id).toSorted()
      const { items } = await store.listTasks({ owner: alice, contextId: old.contextId, limit: 9 })
      expect(items.map(({ id }) => id).toSorted()).toEqual(ids)
      expect(await store.findContext(old.contextId, alice)).toBeDefined()
      for (const task of fresh) await store.commitTask(next(task, 'completed'))
      expect(await store.clearContext(old.contextId, alice)).toBe('cleared')
    }
    expect([...outcomes]).not.toContain('absent')
  })

  test('the next removal completes an interrupted one', async () => {
    const id = randomUUID()
    let now = Date.now()
    await using store = await open({ agentId: id, clock: () => now })
    const text = 'x'.repeat(5000)
    const task = await createdIn(store, 'completed', { artifacts: [artifactOf({ kind: 'text', text })] })
    const stays = await createdIn(store, 'completed', { artifacts: [artifactOf({ kind: 'text', text })] })
    const left = await documents<{ _id: string; agent_id: string; task: string }>('parts').findOne({
      agent_id: id,
    } as never)
    await documents('tasks').deleteOne({ _id: `${id}/${task.id}` } as never)
    await documents('removals').insertOne({
      _id: `${id}/x`,
      agent_id: id,
      at: now,
      tasks: [{ task_id: task.id, key: left?.task, owner: alice, context_id: task.contextId }],
    } as never)
    expect(await store.removeEnded('', 9)).toBe(0)
    expect(await documents('parts').countDocuments({ agent_id: id } as never)).toBe(2)
    now += 61_000
    expect(await store.removeEnded('', 9)).toBe(0)
    expect(await documents('parts').countDocuments({ agent_id: id } as never)).toBe(1)
    expect(await documents('removals').countDocuments({ agent_id: id } as never)).toBe(0)
    expect(await store.findContext(task.contextId, alice)).toBeUndefined()
    expect(await store.loadTask(stays.id)).toEqual(stays)
  })

  test('a claim on a nonce without a payment is taken over after a minute but not earlier', async () => {
    let now = Date.now()
    const id = randomUUID()
    await using store = await open({ agentId: id, clock: () => now })
    const first = samplePayment({ nonceKey: 'n' })
    await store.payments.addPayment(first)
    await documents('payments').deleteOne({ agent_id: id } as never)
    expect(await store.payments.addPayment(samplePayment({ nonceKey: 'n' }))).toBe('nonce')
    now += 61_000
    expect(await store.payments.addPayment(samplePayment({ nonceKey: 'n' }))).toBe('added')
    expect(await store.payments.addPayment(samplePayment({ nonceKey: 'n' }))).toBe('nonce')
  })

  test('a process whose claim was taken over while it was suspended undoes its change, so only one row has the nonce', async () => {
    let now = Date.now()
    const given = { agentId: randomUUID(), clock: () => now }
    await using slow = await open(given)
    await using quick = await open(given)
    const session = samplePayment({ kind: 'session', state: 'open' })
    await slow.payments.addPayment(session)
    // oxlint-disable-next-line typescript/unbound-method -- called below with its collection
    const { updateOne } = Collection.prototype
    const commits = vi.spyOn(Collection.prototype, 'updateOne').mockImplementationOnce(async function (
      this: Collection,
      ...asked
    ) {
      now += 61_000
      expect(await quick.payments.addPayment(samplePayment({ nonceKey: 'n' }))).toBe('added')
      return updateOne.apply(this, asked)
    })
    const claimed = { ...session, state: 'claimed' as const, nonceKey: 'n', version: 1 }
    expect(await slow.payments.commitPayment(claimed)).toBe('nonce')
    commits.mockRestore()
    const row = await quick.payments.loadPayment(session.id)
    expect(row).toEqual({ ...session, version: 2 })
    expect(await slow.payments.commitPayment({ ...session, state: 'expired', version: 3 })).toBe('committed')
  })

  test('while the server is down, every call rejects with Unavailable without driver messages, and no data is lost', async () => {
    if (server.kind === 'MONGODB_URL') return
    await using store = await open({ connectTimeoutMs: 300 })
    const task = await created(store)
    await store.ping()
    await server.kill()
    const away = {
      error: 'Unavailable',
      message: 'The storage does not answer',
      headers: { 'retry-after': '5' },
    }
    await expect(store.ping()).rejects.toMatchObject(away)
    await expect(store.loadTask(task.id)).rejects.toMatchObject(away)
    await expect(store.commitTask(next(task, 'working'))).rejects.toMatchObject(away)
    await server.restart()
    // The driver looks for the server once a second, which is longer than this store's timeout.
    await expect.poll(() => store.loadTask(task.id).catch(() => 'away')).toEqual(task)
    expect(await store.commitTask(next(task, 'completed'))).toBe(true)
  })

  test('a closed store rejects calls with a clear message', async () => {
    const store = await open()
    await store[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
    const closed = { error: 'Unavailable', message: 'The store is closed' }
    await expect(store.ping()).rejects.toMatchObject(closed)
    await expect(store.payments.loadPayment('x')).rejects.toMatchObject(closed)
  })
})
