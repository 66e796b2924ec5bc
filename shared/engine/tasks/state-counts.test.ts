import { setTimeout as wait } from 'node:timers/promises'
import { makeLog } from '@parley/kit/process/log'
import { expect, test } from 'vitest'
import { StateCounts } from './state-counts.ts'

const log = makeLog({ level: 'silent', name: 'test' })

test('concurrent readers share one count, and cached counts require no further count', async () => {
  let counts = 0
  const figures = new StateCounts({ count: async () => void (counts += 1), log, cacheMs: 100 })
  await figures.refresh()
  expect(counts).toBe(0)
  await wait(150)
  await Promise.all([figures.refresh(), figures.refresh(), figures.refresh()])
  expect(counts).toBe(1)
  await figures.refresh()
  expect(counts).toBe(1)
})

test('a store that hangs or fails does not delay readers', async () => {
  const hangs = new StateCounts({ count: () => new Promise(() => {}), log, cacheMs: 0, waitMs: 20 })
  await hangs.refresh()
  let fails = 0
  const count = async () => {
    fails += 1
    throw new Error('away')
  }
  const failing = new StateCounts({ count, log, cacheMs: 0 })
  await failing.refresh()
  await failing.refresh()
  expect(fails).toBeGreaterThan(0)
})
