import { randomUUID } from 'node:crypto'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { alice, bob, next, sampleRecord } from '../sample-record.cases.ts'
import type { Store, TaskRecord } from '../store.ts'
import { openMongodbStore } from './store.ts'

const generated = { task: true, context: true }

describe.skipIf(!hasMongodb)('concurrent writes to a MongoDB store share commands (needs mongod)', () => {
  let server: MongodbServer
  let url = ''
  beforeAll(async () => {
    server = await startMongodb()
    url = server.newUrl()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  async function open(agentId: string = randomUUID()) {
    const commands: Record<string, unknown>[] = []
    const store = await openMongodbStore({ url, agentId, onCommand: (command) => commands.push(command) })
    const counted = (name: string) => commands.filter((command) => name in command).length
    return { store, commands, counted, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() }
  }

  const createdMany = async (store: Store, count: number) => {
    const records = Array.from({ length: count }, () => sampleRecord())
    expect(await Promise.all(records.map((record) => store.createTask(record, generated)))).not.toContain(
      false,
    )
    return records
  }

  test('of tasks, of their contexts and of their ends', async () => {
    await using opened = await open()
    const { store, commands, counted } = opened
    commands.length = 0
    const records = await createdMany(store, 64)
    // Two commands of 32 tasks and two of 32 contexts.
    expect(counted('insert')).toBe(4)
    const changes = records.map((record) => next(record, 'canceled'))
    expect(await Promise.all(changes.map((change) => store.commitTask(change)))).not.toContain(false)
    expect([counted('update'), counted('find')]).toEqual([2, 0])
    for (const change of changes) {
      expect(await store.loadTask(change.id)).toEqual(change)
      expect(await store.findContext(change.contextId, alice)).toMatchObject({ id: change.contextId })
    }
  })

  test('a taken task id fails only its own create', async () => {
    await using opened = await open()
    const [first, taken, last] = [sampleRecord(), sampleRecord(), sampleRecord()]
    await opened.store.createTask(taken)
    const created = [first, taken, last].map((record) => opened.store.createTask(record, generated))
    expect(await Promise.all(created)).toEqual([true, false, true])
  })

  test('a context of another owner refuses only its own task, even if its id was called generated', async () => {
    await using opened = await open()
    const { store } = opened
    const of = sampleRecord({ owner: bob })
    await store.createTask(of)
    const [refused, other] = [sampleRecord({ contextId: of.contextId }), sampleRecord()]
    const outcomes = await Promise.allSettled(
      [refused, other].map((record) => store.createTask(record, generated)),
    )
    expect(outcomes).toMatchObject([
      { status: 'rejected', reason: { error: 'ContextNotFound' } },
      { status: 'fulfilled', value: true },
    ])
    expect(await store.loadTask(refused.id)).toBeUndefined()
  })

  test('of two processes that end the same tasks, exactly one ends each, and its change is stored', async () => {
    const agentId = randomUUID()
    await using one = await open(agentId)
    await using other = await open(agentId)
    const records = await createdMany(one.store, 40)
    const end = (store: Store, by: string, all: TaskRecord[]) =>
      Promise.all(
        all.map(async (record) => {
          const change = { ...next(record, 'canceled'), contextName: by }
          return { by, id: record.id, committed: await store.commitTask(change) }
        }),
      )
    const outcomes = await Promise.all([
      end(one.store, 'one', records),
      end(other.store, 'other', records.toReversed()),
    ])
    const winners = outcomes.flat().filter(({ committed }) => committed)
    expect(winners.map(({ id }) => id).toSorted()).toEqual(records.map(({ id }) => id).toSorted())
    for (const { id, by } of winners) expect((await one.store.loadTask(id))?.contextName).toBe(by)
  })

  test('neither the ends of tasks nor the renewal of their leases fails if both change the same tasks', async () => {
    await using opened = await open()
    const { store } = opened
    for (let round = 0; round < 10; round += 1) {
      const until = Date.now() + 60_000
      const records = Array.from({ length: 16 }, () => ({
        ...sampleRecord(),
        lease: { holder: 'me', until },
        starts: 1,
      }))
      await Promise.all(records.map((record) => store.createTask(record, generated)))
      const ids = records.map(({ id }) => id).toSorted((a, b) => (a < b ? 1 : -1))
      const renewals = [1, 2, 3].map((later) => store.renewLeases('me', ids, until + later))
      const commits = records.map(({ lease: _lease, ...record }) =>
        store.commitTask(next(record, 'canceled')),
      )
      expect(await Promise.all(commits)).not.toContain(false)
      await Promise.all(renewals)
    }
  })
})
