import { randomUUID } from 'node:crypto'
import { connectMongodb, type MongodbDatabase } from '@parley/kit/database/mongodb/database'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { Binary, BSON, type Collection, type Db, type Document, Double, Int32, Long } from 'mongodb'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openMongodbStore } from '../../store/mongodb/store.ts'
import { assignDatabase, holdsData, type MoveOptions, moveAgent } from './move.ts'

interface Stored extends Document {
  _id: string
  agent_id: string
}

describe.skipIf(!hasMongodb)('moving the data of an agent (needs mongod)', () => {
  let server: MongodbServer
  let database: MongodbDatabase
  let url = ''
  beforeAll(async () => {
    server = await startMongodb()
    url = server.newUrl()
    database = await connectMongodb({ url })
  })
  afterAll(async () => {
    await database[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  async function setup(documents = 40) {
    const agentId = randomUUID()
    const name = `own_${agentId.slice(0, 8)}`
    const from = database.db
    // It writes the first documents.
    await (await openMongodbStore({ url, agentId }))[Symbol.asyncDispose]()
    for (const [collection, count] of Object.entries({ tasks: documents, payments: 3, unknown_later: 2 })) {
      const rows = Array.from({ length: count }, (_, n) => documentOf(agentId, n))
      await from.collection<Stored>(collection).insertMany(rows, { promoteValues: false } as never)
    }
    await assignDatabase(from, { agentId, name: 'one', database: name })
    const to = database.client.db(name)
    const move = (more: Partial<MoveOptions> = {}) =>
      moveAgent({ agentId, from, to, signal: new AbortController().signal, ...more })
    return { agentId, from, to, move, ownUrl: url.replace(/[^/]+$/, name), before: await dump(from, agentId) }
  }

  test('every document is in the new database with the same bytes, and none in the old one', async () => {
    const { agentId, from, to, move, before } = await setup(1200)
    const other = await setup()
    expect(Object.keys(before)).toEqual(
      expect.arrayContaining(['payments', 'settings', 'tasks', 'unknown_later']),
    )
    expect(await move()).toBe(Object.values(before).flat().length)
    expect(await dump(to, agentId)).toEqual(before)
    expect(await holdsData(from, agentId)).toBe(false)
    expect(await dump(from, other.agentId)).toEqual(other.before)
    expect(await dump(to, other.agentId)).toEqual({})
    expect(await move()).toBe(0)
  })

  test('a move that is interrupted before any step is completed by the next one', async () => {
    const steps: string[] = []
    const { move: moveAll } = await setup(3)
    await moveAll({ onStep: (step) => void steps.push(step) })
    expect(new Set(steps)).toEqual(new Set(['copy', 'verify', 'remove']))
    for (const [at] of steps.entries()) {
      const { agentId, from, to, move, before, ownUrl } = await setup(3)
      const interrupt = new AbortController()
      let step = 0
      const onStep = () => {
        if (step === at) interrupt.abort(new Error('killed'))
        step += 1
      }
      await expect(move({ onStep, signal: interrupt.signal })).rejects.toThrow('killed')
      // Neither database can be used before the data is complete.
      await expect(openMongodbStore({ url, agentId })).rejects.toThrow(/is in the database own_/)
      await expect(openMongodbStore({ url: ownUrl, agentId })).rejects.toThrow(/is being moved/)
      await move()
      expect(await dump(to, agentId)).toEqual(before)
      expect(await holdsData(from, agentId)).toBe(false)
      await using store = await openMongodbStore({ url: ownUrl, agentId })
      await store.ping()
    }
  })

  test('documents that an older process writes after the move are moved later and replace nothing', async () => {
    const { agentId, from, to, move } = await setup(2)
    await move()
    const tasks = from.collection<Stored>('tasks')
    await to.collection<Stored>('tasks').updateOne({ _id: `${agentId}/0` }, { $set: { version: 2 } })
    await tasks.insertMany([
      { _id: `${agentId}/late`, agent_id: agentId },
      { _id: `${agentId}/0`, agent_id: agentId },
    ])
    expect(await move()).toBe(2)
    expect(await to.collection<Stored>('tasks').countDocuments({ agent_id: agentId })).toBe(3)
    expect(await to.collection<Stored>('tasks').findOne({ _id: `${agentId}/0` })).toMatchObject({
      version: 2,
    })
    expect(await holdsData(from, agentId)).toBe(false)
  })

  /** Writes a task of the agent after each verification of a collection, at most `limit` times. */
  function writer(tasks: Collection<Stored>, agentId: string, limit: number) {
    const written: string[] = []
    const onStep = async (step: string) => {
      if (step !== 'verify' || written.length >= limit) return
      written.push(`${agentId}/new ${written.length}`)
      await tasks.insertOne({ _id: written.at(-1) ?? '', agent_id: agentId })
    }
    return { written, onStep }
  }

  test('data that changes during the copy is copied again', async () => {
    const { agentId, from, to, move } = await setup(2)
    const { onStep } = writer(from.collection('tasks'), agentId, 1)
    await move({ onStep })
    expect(await to.collection<Stored>('tasks').countDocuments({ agent_id: agentId })).toBe(3)
    expect(await holdsData(from, agentId)).toBe(false)
  })

  test('if data changes during each copy, nothing is removed', async () => {
    const { agentId, from, move } = await setup(2)
    const { written, onStep } = writer(from.collection('tasks'), agentId, Infinity)
    await expect(move({ onStep })).rejects.toThrow(/Another process of this agent may still run/)
    const left = await from.collection<Stored>('tasks').countDocuments({ agent_id: agentId })
    expect(left).toBe(2 + written.length)
  })

  test('an unfinished migration from an embedded store is not moved', async () => {
    const { agentId, from, move } = await setup(1)
    await from.collection<Stored>('imports').insertOne({ _id: agentId, agent_id: agentId, state: 'running' })
    await expect(move()).rejects.toThrow(/is not finished/)
    expect(await holdsData(from, agentId)).toBe(true)
  })

  test('the first name of a database stays, also if two gateways assign one', async () => {
    const agentId = randomUUID()
    const assign = (name: string) => assignDatabase(database.db, { agentId, name, database: `db_${name}` })
    const both = await Promise.all([assign('one'), assign('two')])
    expect(new Set(both.map((one) => one.database)).size).toBe(1)
    expect((await assign('three')).database).toBe(both[0]?.database)
  })
})

/** Returns the raw documents of an agent by collection. */
async function dump(db: Db, agentId: string): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {}
  for (const { name } of await db.listCollections({}, { nameOnly: true }).toArray()) {
    if (['imports', 'schema', 'agent_databases'].includes(name)) continue
    const all = await db
      .collection<Stored>(name)
      .find({ agent_id: agentId }, { promoteValues: false, sort: { _id: 1 } })
      .toArray()
    if (all.length > 0) found[name] = all.map((one) => Buffer.from(BSON.serialize(one)).toString('base64'))
  }
  return found
}

function documentOf(agentId: string, n: number): Stored {
  return {
    _id: `${agentId}/${n}`,
    agent_id: agentId,
    integer: new Int32(n),
    long: Long.fromString('9007199254740993'),
    double: new Double(3),
    bytes: new Binary(Buffer.from([1, 2, n % 256])),
    at: new Date(n),
    list: ['a', { deep: null, 'dotted.name': true }],
    body: 'x'.repeat(n % 7 === 0 ? 20_000 : 10),
  }
}
