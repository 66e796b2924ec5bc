import { hasMongodb, startMongodb } from '@parley/tools/testing/mongodb-server'
import { MongoClient } from 'mongodb'
import { describe, expect, test } from 'vitest'
import { samplePayment } from '../store-payments.cases.ts'
import { openMongodbStore } from './store.ts'

describe.skipIf(!hasMongodb)('the ledger in MongoDB (needs mongod)', () => {
  test('rows created in the same microsecond by several processes are each listed once, wherever a page ends', async () => {
    await using server = await startMongodb()
    const url = server.newUrl()
    await using store = await openMongodbStore({ url, agentId: 'agent' })
    const ids: string[] = []
    for (let i = 0; i < 6; i += 1) {
      const payment = samplePayment({ state: 'orphaned' })
      await store.payments.addPayment(payment)
      ids.push(payment.id)
    }
    await using client = await MongoClient.connect(url)
    const rows = client.db().collection<{ _id: string; made: number }>('payments')
    const tied = ids.slice(1, 5).map((id) => `agent/${id}`)
    await rows.updateMany({ _id: { $in: tied } }, { $set: { made: await madeOf(rows, ids[1] ?? '') } })
    for (const limit of [1, 2, 3, 4, 5]) {
      const listed: string[] = []
      let cursor: number | undefined
      do {
        const query = { state: 'orphaned' as const, limit, ...(cursor !== undefined && { cursor }) }
        const page = await store.payments.listByState(query)
        listed.push(...page.items.map(({ id }) => id))
        cursor = page.nextCursor
      } while (cursor !== undefined)
      expect([limit, listed.length, new Set(listed)]).toEqual([limit, 6, new Set(ids)])
    }
  })
})

async function madeOf(
  rows: { findOne(key: { _id: string }): Promise<{ made: number } | null> },
  id: string,
): Promise<number> {
  const row = await rows.findOne({ _id: `agent/${id}` })
  if (row === null) throw new Error(`no row of ${id}`)
  return row.made
}
