import { expect, test } from 'vitest'
import { openMemoryStore } from '../store/memory/store.ts'
import { createdIn } from '../store/sample-record.cases.ts'
import type { UsageStore } from '../store/usage-days.ts'
import { otherOwners, UsageRollup } from './usage-rollup.ts'

const silent = { warn: () => {} }

async function started(options: { ownersMax?: number; wrap?: (store: UsageStore) => UsageStore } = {}) {
  const store = openMemoryStore()
  const clock = { now: Date.parse('2026-11-22T23:59:00Z') }
  const { wrap = (one) => one, ...more } = options
  const rollup = new UsageRollup({ store: wrap(store.usage), log: silent, now: () => clock.now, ...more })
  const finished = async (owner: string, workedMs: number) => {
    const after = await createdIn(store, 'completed', { owner, workedMs })
    rollup.committed({ ...after, workedMs: 0, status: { ...after.status, state: 'working' } }, after)
  }
  return { store, rollup, clock, finished }
}

test('the usage of many tasks is stored in one write per flush', async () => {
  let writes = 0
  const wrap = (store: UsageStore): UsageStore => ({
    ...store,
    addUsage: (rows) => {
      writes += 1
      return store.addUsage(rows)
    },
  })
  const { store, rollup, finished } = await started({ wrap })
  for (let i = 0; i < 50; i += 1) {
    rollup.accepted({ owner: `owner ${i % 5}` })
    await finished(`owner ${i % 5}`, 10)
  }
  await Promise.all([rollup.flush(), rollup.flush()])
  expect(writes).toBe(1)
  const rows = await store.usage.listUsage('2026-11-22')
  expect(rows).toHaveLength(5)
  expect(rows[0]).toMatchObject({ tasks: 10, completed: 10, failed: 0, workedMs: 100 })
  await rollup.flush()
  expect(writes).toBe(1)
})

test('usage belongs to the UTC day on which it happens', async () => {
  const { store, rollup, clock } = await started()
  rollup.accepted({ owner: 'alice' })
  clock.now += 120_000
  rollup.accepted({ owner: 'alice' })
  await rollup[Symbol.asyncDispose]()
  expect((await store.usage.listUsage('2026-11-22'))[0]?.tasks).toBe(1)
  expect((await store.usage.listUsage('2026-11-23'))[0]?.tasks).toBe(1)
})

test('the owners of a day beyond the maximum are added up, also after a restart', async () => {
  const { store, rollup } = await started({ ownersMax: 2 })
  for (const owner of ['a', 'b', 'c', 'd', 'a']) {
    rollup.accepted({ owner })
    await rollup.flush()
  }
  const again = new UsageRollup({
    store: store.usage,
    log: silent,
    ownersMax: 2,
    now: () => Date.parse('2026-11-22T10:00:00Z'),
  })
  for (const owner of ['e', 'b']) again.accepted({ owner })
  await again[Symbol.asyncDispose]()
  const rows = await store.usage.listUsage('2026-11-22')
  expect(Object.fromEntries(rows.map(({ owner, tasks }) => [owner, tasks]))).toEqual({
    a: 2,
    b: 2,
    [otherOwners]: 3,
  })
})

test('usage that could not be stored is stored later', async () => {
  let fails = true
  const wrap = (store: UsageStore): UsageStore => ({
    ...store,
    addUsage: async (rows) => {
      if (fails) throw new Error('no disk')
      return store.addUsage(rows)
    },
  })
  const { store, rollup } = await started({ wrap })
  rollup.accepted({ owner: 'alice' })
  await rollup.flush()
  rollup.accepted({ owner: 'alice' })
  rollup.reported({ inputTokens: Number.NaN, outputTokens: 3 }, 'alice')
  fails = false
  await rollup.flush()
  expect((await store.usage.listUsage('2026-11-22'))[0]).toMatchObject({
    tasks: 2,
    inputTokens: 0,
    outputTokens: 3,
  })
})
