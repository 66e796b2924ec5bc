import { insertUnlessThere, isDuplicate } from '@parley/kit/database/mongodb/database'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

interface Counter {
  _id: string
  version: number
  sum: number
}

const [writers, increments, rounds] = [16, 25, 20]
const all = <T>(count: number, run: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => run(index)))

/** The server guarantees on which the store depends. */
describe.skipIf(!hasMongodb)('the MongoDB-compatible test server (needs mongod)', () => {
  let server: MongodbServer
  let client: MongoClient
  beforeAll(async () => {
    server = await startMongodb()
    client = await MongoClient.connect(server.newUrl(), { maxPoolSize: writers, retryWrites: false })
  })
  afterAll(async () => {
    await client.close()
    await server[Symbol.asyncDispose]()
  })

  const counters = () => client.db().collection<Counter>('counters')
  type Change = (was: Counter) => Promise<boolean>
  const changes: [string, Change][] = [
    [
      'updateOne',
      async ({ _id, version, sum }) => {
        const change = { $set: { version: version + 1, sum: sum + 1 } }
        return (await counters().updateOne({ _id, version }, change)).matchedCount === 1
      },
    ],
    [
      'findOneAndUpdate',
      async ({ _id, version, sum }) => {
        const change = { $set: { version: version + 1, sum: sum + 1 } }
        return (await counters().findOneAndUpdate({ _id, version }, change)) !== null
      },
    ],
    [
      'two updates in one message, of which one can match',
      async ({ _id, version, sum }) => {
        const update = { $set: { version: version + 1, sum: sum + 1 } }
        const outcome = await counters().bulkWrite([
          { updateOne: { filter: { _id, version, sum }, update } },
          { updateOne: { filter: { _id, version, sum: { $ne: sum } }, update } },
        ])
        return outcome.matchedCount === 1
      },
    ],
  ]

  test.each(changes)(
    '%s with the version in its filter: no change of 16 writers is lost',
    async (_id, change) => {
      await counters().insertOne({ _id, version: 0, sum: 0 })
      await all(writers, async () => {
        for (let done = 0; done < increments; ) {
          const was = await counters().findOne({ _id })
          if (was !== null && (await change(was))) done += 1
        }
      })
      const wanted = writers * increments
      expect(await counters().findOne({ _id })).toEqual({ _id, version: wanted, sum: wanted })
    },
  )

  test('exactly one of several concurrent inserts of an _id succeeds', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const document = { _id: `insert ${round}`, version: 0, sum: 0 }
      const won = await all(writers, () => insertUnlessThere(counters(), document))
      expect(won.filter(Boolean)).toHaveLength(1)
    }
  })

  test('concurrent upserts of one _id are each counted exactly once unless they fail', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const _id = `upsert ${round}`
      const outcomes = await all(writers, async () => {
        try {
          await counters().updateOne({ _id }, { $inc: { sum: 1 } }, { upsert: true })
          return true
        } catch (error) {
          if (isDuplicate(error)) return false
          throw error
        }
      })
      expect((await counters().findOne({ _id }))?.sum).toBe(outcomes.filter(Boolean).length)
    }
  })

  test('exactly one of several concurrent deletions of a document reports success', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const _id = `delete ${round}`
      await counters().insertOne({ _id, version: 0, sum: 0 })
      const deleted = await all(writers, async () => (await counters().deleteOne({ _id })).deletedCount)
      expect(deleted.reduce((sum, one) => sum + one)).toBe(1)
    }
  })
})
