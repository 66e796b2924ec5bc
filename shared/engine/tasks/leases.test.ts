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

test('renews a lease until it is disposed, and notifies its holder when another process has the task', async () => {
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

describe('several processes that share a store', () => {
  afterEach(() => vi.useRealTimers())

  /** Creates a process with a test clock and a store that can become unavailable. */
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

  test("a dead process's task restarts within 8 s, and a process that is blocked for 4 s keeps its tasks", async () => {
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

  test('an expired lease belongs to a dead process if the store has responded throughout', async () => {
    const { leases, seconds } = scene()
    await seconds(10)
    expect(leases.heldUntil(ofAnother(Date.now() + 1))).toBe(Date.now() + 1)
    expect(leases.heldUntil(ofAnother(Date.now() - 1))).toBeUndefined()
    expect(
      leases.heldUntil({ ...sampleRecord(), lease: { holder: leases.holder, until: Date.now() + 9 } }),
    ).toBeUndefined()
  })

  test('after a store outage, each process has the duration of one lease to renew its own leases', async () => {
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

  test('a suspension of this process also extends leases, because other processes may have been suspended', async () => {
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
