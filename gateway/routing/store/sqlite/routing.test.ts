import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { afterEach, expect, test } from 'vitest'
import { gatewayMigrations } from '../../../store/sqlite/schema.ts'
import { routingStoreCases } from '../routing-store.cases.ts'
import { SqliteRoutingStore } from './routing.ts'

const close: (() => Promise<unknown>)[] = []
afterEach(async () => {
  while (close.length > 0) await close.pop()?.()
})

routingStoreCases('SQLite', async (bounds) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-routing-store-'))
  const database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  close.push(
    () => rm(folder, { recursive: true, force: true }),
    async () => database[Symbol.asyncDispose](),
  )
  return new SqliteRoutingStore(database, bounds)
})

test('queued decisions are written when the store is disposed of, and one that cannot be written affects no other', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-routing-store-'))
  close.push(() => rm(folder, { recursive: true, force: true }))
  const open = () => openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  const database = await open()
  const store = new SqliteRoutingStore(database)
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  const queued = [{}, circular, {}].map((body, at) =>
    store.queueDecision({ id: `d${at}`, at, body: body as Record<string, string> }),
  )
  const settled = Promise.allSettled(queued)
  await store[Symbol.asyncDispose]()
  expect((await settled).map(({ status }) => status)).toContain('rejected')
  await database[Symbol.asyncDispose]()
  await using again = await open()
  const reopened = new SqliteRoutingStore(again)
  const found = await Promise.all(['d0', 'd1', 'd2'].map((id) => reopened.findDecision(id)))
  expect(found.map((decision) => decision?.id)).toEqual(['d0', undefined, 'd2'])
})
