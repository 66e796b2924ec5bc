import { randomUUID } from 'node:crypto'
import { type TestAgent, testAgent } from '@parley/agent/internal/testing'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { rpc } from '@parley/tools/testing/raw-http'
import { timestamp } from '@parley/wire/model/timestamp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { next, sampleRecord } from '../store/sample-record.cases.ts'
import type { TaskRecord } from '../store/store.ts'
import { NewTaskCache } from './new-task-cache.ts'

/** Counts how often a task's record is loaded from the store for its run. */
function countReads({ services }: TestAgent['app']) {
  const { store } = services
  const load = store.loadTask.bind(store)
  const reads = new Map<string, number>()
  store.loadTask = (id) => {
    reads.set(id, (reads.get(id) ?? 0) + 1)
    return load(id)
  }
  return (id: string) => reads.get(id) ?? 0
}

async function sent(agent: TestAgent, message: object): Promise<string> {
  const alice = agent.caller('alice')
  const whole = { role: 'user', kind: 'message', messageId: randomUUID(), ...message }
  const { json } = await rpc(agent, 'message/send', { message: whole }, { token: alice.token })
  await alice.wait(json.result.id)
  return json.result.id
}

const base64 = 'a'.repeat(20_000)
const file = (length: number) => ({ kind: 'file', file: { bytes: base64.slice(0, length) } })

test.each<[string, object, number]>([
  ['a short text', { parts: [{ kind: 'text', text: 'hi' }] }, 0],
  ['a small file', { parts: [file(1000)] }, 0],
  ['a few values as data', { parts: [{ kind: 'data', data: { a: [1, 2, { b: 'c' }] } }] }, 0],
  ['a text of 20,000 letters', { parts: [{ kind: 'text', text: base64 }] }, 1],
  ['a file of 20,000 letters', { parts: [file(20_000)] }, 1],
  ['data with 10,000 numbers', { parts: [{ kind: 'data', data: { n: Array(10_000).fill(1) } }] }, 1],
  ['two files of 10,000 letters', { parts: [file(10_000), file(10_000)] }, 1],
  ['a small part with large metadata', { parts: [{ ...file(4), metadata: { note: base64 } }] }, 1],
  ['a small message with large metadata', { parts: [file(4)], metadata: { note: base64 } }, 1],
])('caches a new task until its run if its whole record is small: %s', async (_title, message, reads) => {
  await using agent = await testAgent({ handle: () => 'done' })
  const readsOf = countReads(agent.app)
  expect(readsOf(await sent(agent, message))).toBe(reads)
})

test('loads a new task that another process has run and released from the store', async () => {
  await using agent = await testAgent({ handle: ({ text }) => `ran with ${text}` })
  const { store, runner } = agent.app.services
  const record = sampleRecord({ owner: 'alice' })
  await store.createTask(record)
  runner.remember(record, true)
  const paused = next(record, 'input-required')
  await store.commitTask(paused)
  const status = { state: 'submitted' as const, timestamp: timestamp() }
  const answered = { ...next(paused, 'submitted'), status }
  await store.commitTask(answered)
  await runner.run({ taskId: record.id, version: answered.version, owner: 'alice' })
  expect((await agent.caller('alice').get(record.id)).status.state).toBe('completed')
})

test('canceling a queued task removes it from the cache', async () => {
  const release = Promise.withResolvers<void>()
  await using agent = await testAgent({ concurrency: 1, handle: () => release.promise.then(() => 'done') })
  const { runner } = agent.app.services
  const forgotten: string[] = []
  const forget = runner.forget.bind(runner)
  runner.forget = (taskId) => {
    forgotten.push(taskId)
    forget(taskId)
  }
  const alice = agent.caller('alice')
  await alice.send('runs')
  const { id } = await alice.send('waits')
  await alice.cancel(id)
  expect(forgotten).toEqual([id])
  release.resolve()
})

test('removes an entry when its task starts or ends', () => {
  const fresh = new NewTaskCache()
  const records = Array.from({ length: 1000 }, () => sampleRecord())
  for (const record of records) fresh.put(record, true)
  const [first, second, late] = [...records.slice(0, 2), sampleRecord()] as [
    TaskRecord,
    TaskRecord,
    TaskRecord,
  ]
  const isKept = (record: TaskRecord) => fresh.take({ taskId: record.id, version: 0 }) !== undefined
  fresh.put(late, true)
  expect(isKept(late)).toBe(false)
  fresh.delete(first.id)
  fresh.put(late, true)
  expect([isKept(late), isKept(first), isKept(second), isKept(second)]).toEqual([true, false, true, false])
})

describe.skipIf(!hasMongodb)('new tasks of a process that shares its store (needs mongod)', () => {
  let server: MongodbServer
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  test('does not cache tasks that any process may run, which leaves space for tasks that run here immediately', async () => {
    await using agent = await testAgent({ handle: () => 'done' }, { env: { STORE_URL: server.newUrl() } })
    for (let i = 0; i < 1000; i += 1) agent.app.services.runner.remember(sampleRecord(), true)
    const readsOf = countReads(agent.app)
    expect(readsOf(await sent(agent, { parts: [{ kind: 'text', text: 'hi' }] }))).toBe(0)
  })
})
