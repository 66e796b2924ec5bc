import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { afterEach, expect, test, vi } from 'vitest'
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

test('queued routes are written together, and when the store is disposed of', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-routing-store-'))
  close.push(() => rm(folder, { recursive: true, force: true }))
  const open = () => openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  const database = await open()
  const write = vi.spyOn(database, 'writeSoon')
  const store = new SqliteRoutingStore(database)
  const route = (id: string) => ({ owner: 'o', kind: 'task', id, agent: 'a', at: 1 }) as const
  await Promise.all(['t1', 't2'].map((id) => store.queueRoutes([route(id)])))
  expect(write).toHaveBeenCalledTimes(1)
  void store.queueRoutes([route('t3')])
  await store[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  await using again = await open()
  const reopened = new SqliteRoutingStore(again)
  for (const id of ['t1', 't2', 't3']) expect(await reopened.find('o', 'task', id)).toEqual(route(id))
})

test('queued routes that cannot be written are reported, and no longer found', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-routing-store-'))
  close.push(() => rm(folder, { recursive: true, force: true }))
  await using database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  const store = new SqliteRoutingStore(database)
  vi.spyOn(database, 'writeSoon').mockRejectedValueOnce(new Error('full'))
  const queued = store.queueRoutes([{ owner: 'o', kind: 'task', id: 't1', agent: 'a', at: 1 }])
  expect(await store.find('o', 'task', 't1')).toMatchObject({ agent: 'a' })
  await expect(queued).rejects.toThrow('full')
  expect(await store.find('o', 'task', 't1')).toBeUndefined()
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
