import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { timestampOf } from '@parley/wire/model/timestamp'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startRetention } from './retention.ts'
import { alice, createdIn } from './sample-record.cases.ts'
import { openSqliteStore } from './sqlite/store.ts'
import type { Store } from './store.ts'

const dayMs = 24 * 60 * 60 * 1000
let folder = ''

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-retention-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

const daysAgo = (days: number) => timestampOf((Date.now() - days * dayMs) * 1000)

async function endedAt(store: Store, updatedAt: string): Promise<string> {
  const record = await createdIn(store, 'working')
  await store.commitTask({
    ...record,
    version: 2,
    updatedAt,
    status: { state: 'completed', timestamp: updatedAt },
  })
  return record.id
}

/** Starts retention and waits for the end of its first run. */
async function retained(store: Store, days: number): Promise<unknown[]> {
  const done = Promise.withResolvers<unknown[]>()
  const log = {
    info: (...said: unknown[]) => done.resolve(said),
    warn: (...said: unknown[]) => done.resolve(said),
  }
  using _retention = startRetention({ store, days, log: log as never, batch: 2, pauseMs: 1 })
  return await done.promise
}

test('ended tasks older than RETENTION_DAYS are removed in batches, while newer and unfinished tasks stay', async () => {
  await using store = await openSqliteStore({ file: path.join(folder, 'a.db') })
  for (let n = 0; n < 5; n += 1) await endedAt(store, daysAgo(8))
  const young = await endedAt(store, daysAgo(6))
  const paused = await createdIn(store, 'input-required', { updatedAt: daysAgo(100) })
  expect(await retained(store, 7)).toEqual([{ tasks: 5 }, 'old tasks were removed'])
  const left = (await store.listTasks({ owner: alice, limit: 9 })).items
  expect(left.map(({ id }) => id)).toEqual([paused.id, young])
})

test('a retention of 0 days keeps all tasks', async () => {
  await using store = await openSqliteStore({ file: path.join(folder, 'a.db') })
  const old = await endedAt(store, daysAgo(10_000))
  const asked = Promise.withResolvers<void>()
  const seen: Store = {
    ...store,
    removeEnded: async (before, limit) => {
      const removed = await store.removeEnded(before, limit)
      asked.resolve()
      return removed
    },
  }
  using _retention = startRetention({
    store: seen,
    days: 0,
    log: { info: () => {}, warn: () => {} } as never,
  })
  await asked.promise
  expect(await store.loadTask(old)).toBeDefined()
})

test('the retention job logs an unresponsive store and continues', async () => {
  const store = await openSqliteStore({ file: path.join(folder, 'a.db') })
  await store[Symbol.asyncDispose]()
  expect(await retained(store, 7)).toEqual([
    { err: expect.objectContaining({ error: 'Unavailable' }) },
    'old tasks could not be removed',
  ])
})
