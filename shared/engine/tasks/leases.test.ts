import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { makeLog } from '@parley/kit/process/log'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { sampleRecord } from '../store/sample-record.cases.ts'
import { openSqliteStore } from '../store/sqlite/store.ts'
import type { Store } from '../store/store.ts'
import { Leases, leaseTimes } from './leases.ts'
import { sweepTimes } from './sweep.ts'

const log = makeLog({ level: 'silent', name: 'test' })

test('a lease is renewed until disposed; its holder is notified when another process has the task', async () => {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-leases-'))
  stack.defer(() => rm(folder, { recursive: true }))
  const store = stack.use(await openSqliteStore({ file: path.join(folder, 'agent.db') }))
  const leases = stack.use(new Leases({ store, log, renewEveryMs: 5 }))
  const lease = { holder: leases.holder, until: 1 }
  const record = { ...sampleRecord(), lease }
  await store.createTask(record)
  const told = Promise.withResolvers<void>()
  using _kept = leases.keep(record.id, told.resolve)
  let until = 1
  while (until === 1) {
    await wait(5)
    until = (await store.loadTask(record.id))?.lease?.until ?? 0
  }
  expect(until).toBeGreaterThan(Date.now())
  await store.commitTask({ ...record, version: 1, lease: { holder: 'another', until: 2 } })
  await told.promise
  expect((await store.loadTask(record.id))?.lease).toEqual({ holder: 'another', until: 2 })
})

describe('several processes share a store', () => {
  afterEach(() => vi.useRealTimers())

  /** A process with a test clock and a store that can become unavailable. */
  function scene() {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] })
    const storage = { isAway: false, until: 0 }
    const asked = async (until?: number) => {
      if (storage.isAway) throw new Error('away')
      storage.until = until ?? storage.until
      return []
    }
    const store = {
      exclusive: false,
      ping: () => asked(),
      renewLeases: (_h: string, _t: string[], until: number) => asked(until),
    }
    const leases = new Leases({ store: store as unknown as Store, log })
    return { leases, storage, seconds: (count: number) => vi.advanceTimersByTimeAsync(count * 1000) }
  }
  const ofAnother = (until: number) => ({ ...sampleRecord(), lease: { holder: 'another', until } })

  test('a task of a dead process restarts within 8 s; a process whose event loop is blocked for 4 s keeps its tasks', async () => {
    const { leaseMs, renewEveryMs } = leaseTimes.shared
    expect(leaseMs + sweepTimes.turnMs + sweepTimes.intervalMs).toBeLessThanOrEqual(8000)
    const { leases, storage, seconds } = scene()
    using _kept = leases.keep('t', () => {})
    await seconds(1)
    for (let i = 0; i < 5; i += 1) {
      vi.setSystemTime(Date.now() + renewEveryMs - 1)
      expect(storage.until - Date.now()).toBeGreaterThan(4000)
      await seconds(renewEveryMs / 1000)
    }
  })

  test("a lease that has ended is a dead process's while the storage answers all the time", async () => {
    const { leases, seconds } = scene()
    await seconds(10)
    expect(leases.heldUntil(ofAnother(Date.now() + 1))).toBe(Date.now() + 1)
    expect(leases.heldUntil(ofAnother(Date.now() - 1))).toBeUndefined()
    expect(
      leases.heldUntil({ ...sampleRecord(), lease: { holder: leases.holder, until: Date.now() + 9 } }),
    ).toBeUndefined()
  })

  test('after an outage of the store, each process has the duration of a lease to renew its own', async () => {
    const { leases, storage, seconds } = scene()
    await seconds(10)
    const ended = ofAnother(Date.now() + 2000)
    storage.isAway = true
    await seconds(5)
    expect(leases.heldUntil(ended)).toBe(Date.now() + leaseTimes.shared.leaseMs)
    storage.isAway = false
    await seconds(1)
    const back = Date.now()
    await seconds(5)
    expect(leases.heldUntil(ended)).toBe(back + leaseTimes.shared.leaseMs)
    await seconds(1)
    expect(leases.heldUntil(ended)).toBeUndefined()
  })

  test('after a suspension of this process too, because others may have been suspended', async () => {
    const { leases, seconds } = scene()
    await seconds(10)
    const ended = ofAnother(Date.now() + 2000)
    vi.setSystemTime(Date.now() + 15_000)
    expect(leases.heldUntil(ended)).toBe(Date.now() + leaseTimes.shared.leaseMs)
    await seconds(4)
    expect(leases.heldUntil(ended)).toBeDefined()
    await seconds(4)
    expect(leases.heldUntil(ended)).toBeUndefined()
  })
})
