import { randomUUID } from 'node:crypto'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { alice, artifactOf, createdIn, messageOf, next, sampleRecord } from '../sample-record.cases.ts'
import type { Store } from '../store.ts'
import { badInputCases } from '../store-bad-input.cases.ts'
import { openMongodbStore } from './store.ts'

describe.skipIf(!hasMongodb)('bad input to the MongoDB store (needs mongod)', () => {
  let server: MongodbServer
  let url = ''
  beforeAll(async () => {
    server = await startMongodb()
    url = server.newUrl()
  })
  afterAll(() => server[Symbol.asyncDispose]())
  const open = () => openMongodbStore({ url, agentId: randomUUID(), largePartBytes: 1000 })

  badInputCases(open, ['\ud800', '\udfff'])

  const operators: unknown[] = [{ $gt: '' }, { $ne: null }, { $regex: '.*' }, ['x'], null, 5]
  const questions: [
    string,
    (store: Store, value: string, task: { id: string; contextId: string }) => unknown,
  ][] = [
    ['the id of findTask', (store, value) => store.findTask(value, alice)],
    ['the owner of findTask', (store, value, { id }) => store.findTask(id, value)],
    ['the id of loadTask', (store, value) => store.loadTask(value)],
    ['the owner of listTasks', (store, value) => store.listTasks({ owner: value, limit: 9 })],
    [
      'the context of listTasks',
      (store, value) => store.listTasks({ owner: alice, contextId: value, limit: 9 }),
    ],
    [
      'the state of listTasks',
      (store, value) => store.listTasks({ owner: alice, states: [value as never], limit: 9 }),
    ],
    ['the id of findContext', (store, value) => store.findContext(value, alice)],
    ['the owner of findContext', (store, value, { contextId }) => store.findContext(contextId, value)],
    ['the owner of listContexts', (store, value) => store.listContexts({ owner: value, limit: 9 })],
    ['the context of contextHistory', (store, value) => store.contextHistory(value, alice, 9)],
    ['the id of clearContext', (store, value) => store.clearContext(value, alice)],
    ['the owner of clearContext', (store, value, { contextId }) => store.clearContext(contextId, value)],
    ['the holder of renewLeases', (store, value, { id }) => store.renewLeases(value, [id], 1)],
    ['the task of findFeedback', (store, value) => store.findFeedback(value, alice)],
    ['the owner of findFeedback', (store, value, { id }) => store.findFeedback(id, value)],
    ['the nonce of findByNonce', (store, value) => store.payments.findByNonce(value)],
    ['the owner of findPayment', (store, value, { id }) => store.payments.findPayment(id, value)],
    ['the token of findByCapture', (store, value) => store.payments.findByCapture(value)],
  ]
  test.each(questions)(
    'an operator as %s is refused, even without checks of the caller',
    async (_title, ask) => {
      await using store = await open()
      const task = await createdIn(store, 'completed')
      await store.saveFeedback({ taskId: task.id, owner: alice, feedback: 'f', at: 't' })
      for (const value of operators) {
        await expect((async () => ask(store, value as string, task))()).rejects.toThrow('is a text')
      }
      expect(await store.loadTask(task.id)).toEqual(task)
    },
  )

  test('medium-sized parts are stored separately when the document would be too large for the server', async () => {
    await using store = await openMongodbStore({ url, agentId: randomUUID() })
    const parts = Array.from({ length: 8000 }, (_, n) => {
      return { kind: 'text' as const, text: `${n} ${'x'.repeat(2500)}` }
    })
    const record = sampleRecord({ artifacts: [artifactOf(...parts)] })
    await store.createTask(record)
    expect(await store.loadTask(record.id)).toEqual(record)
  })

  test('a record that is too large even without its large parts is rejected with a readable message', async () => {
    await using store = await open()
    const tiny = Array.from({ length: 20_000 }, () => ({ kind: 'text' as const, text: 'x'.repeat(900) }))
    const record = sampleRecord()
    const refused = (mib: number, error: string) => {
      return { data: { reason: 'too_large' }, message: expect.stringContaining(`${mib} MiB`), error }
    }
    const large = { ...record, artifacts: [artifactOf(...tiny)] }
    await expect(store.createTask(large)).rejects.toMatchObject(refused(13, 'InvalidParams'))
    await store.createTask(record)
    const commit = store.commitTask(next(record, 'completed', { artifacts: large.artifacts }))
    await expect(commit).rejects.toMatchObject(refused(15, 'InvalidAgentResponse'))
    expect(await store.loadTask(record.id)).toEqual(record)
  })

  test('a message of the maximum size can be started, paused and completed', async () => {
    await using store = await open()
    const record = sampleRecord()
    const filled = (mib: number) => {
      return [{ ...messageOf([], record), metadata: { note: 'x'.repeat(mib * 1024 * 1024 - 2000) } }]
    }
    await store.createTask(record)
    const paused = next(record, 'input-required')
    expect(await store.commitTask(paused)).toBe(true)
    const more = next(paused, 'submitted', { history: filled(14) })
    const refused = { error: 'InvalidParams', data: { reason: 'too_large' } }
    await expect(store.commitTask(more)).rejects.toMatchObject(refused)
    const taken = { ...more, history: filled(13) }
    expect(await store.commitTask(taken)).toBe(true)
    const asks = next(next(taken, 'working'), 'input-required', {
      history: filled(14),
      version: taken.version + 1,
    })
    expect(await store.commitTask(asks)).toBe(true)
    expect(await store.commitTask(next(asks, 'canceled', { history: filled(15) }))).toBe(true)
  })

  test('a cursor from another agent in the same database is rejected', async () => {
    await using one = await open()
    await using other = await open()
    for (const store of [one, other, one, other]) await createdIn(store, 'completed')
    const cursor = (await one.listTasks({ owner: alice, limit: 1 })).nextCursor ?? ''
    expect((await one.listTasks({ owner: alice, limit: 1, cursor })).items).toHaveLength(1)
    const theirs = other.listTasks({ owner: alice, limit: 1, cursor })
    await expect(theirs).rejects.toMatchObject({ error: 'InvalidParams' })
  })
})
