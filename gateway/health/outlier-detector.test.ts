import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase, type SqliteDatabase } from '@parley/kit/database/sqlite/database'
import { makeLog } from '@parley/kit/process/log'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Registry } from '../registry/registry.ts'
import { SqliteRegistryStore } from '../registry/store/sqlite/registry.ts'
import { gatewayMigrations } from '../store/sqlite/schema.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { OutlierDetector } from './outlier-detector.ts'

const log = makeLog({ level: 'silent', name: 'test' })
let folder: string
let database: SqliteDatabase
let now: number
let registry: Registry
let stats: OutlierDetector
let id: string

beforeEach(async () => {
  now = Date.now()
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-work-'))
  database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  registry = await Registry.open(new SqliteRegistryStore(database), { now: () => now })
  stats = new OutlierDetector({
    registry,
    log,
    now: () => now,
    halfLifeMs: 60_000,
    ejectionMs: 1000,
    ejectionMaxMs: 4000,
  })
  const about = { name: 'sky', description: '', url: 'http://x', card: {}, skills: [], owner: 'sky' }
  const entry = await registry.register({ ...about, origin: 'registered', verified: true, admitted: true })
  id = entry.id
})

afterEach(async () => {
  stats[Symbol.dispose]()
  await registry.flush()
  await database[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const seen = () => {
  stats.publish()
  return registry.find(id)?.measurements
}

const eject = () => expect.poll(() => registry.find(id)?.quarantine?.until)

test('measurements are stored in the agent’s entry and decay over time', () => {
  for (let time = 0; time < 8; time += 1) stats.taskEnded(id, 'completed', 100 * (time + 1))
  stats.taskEnded(id, 'failed')
  stats.taskEnded(id, 'failed')
  expect(seen()).toEqual({
    samples: 10,
    completedTasks: 0,
    successShare: 0.8,
    latencyP50Ms: 500,
    latencyP95Ms: 800,
  })
  now += 60_000
  for (let time = 0; time < 5; time += 1) stats.taskEnded(id, 'failed')
  expect(seen()).toMatchObject({ samples: 10, successShare: 0.4 })
})

test('each heartbeat adds the capped growth of its counters, and a lower counter is treated as reset', () => {
  stats.heartbeat(id, {}, { completed: 3, failed: 1 })
  stats.heartbeat(id, { completed: 3, failed: 1 }, { completed: 1, failed: 0 })
  expect(seen()).toMatchObject({ samples: 5, successShare: 0.8 })
  stats.heartbeat(id, {}, { completed: 1_000_000 })
  expect(seen()?.samples).toBe(100)
})

test('many heartbeats add no more tasks than a single heartbeat in the same time', () => {
  for (let time = 1; time <= 50; time += 1)
    stats.heartbeat(id, { completed: (time - 1) * 100 }, { completed: time * 100 })
  expect(seen()?.samples).toBe(100)
})

test('self-reported counters do not hide failed requests', () => {
  for (let time = 0; time < 10; time += 1) {
    stats.requestFailed(id)
    stats.requestAnswered(id)
  }
  stats.heartbeat(id, {}, { completed: 100 })
  expect(seen()?.successShare).toBe(0.5)
})

test('the self-reported latency is used while the gateway has few latency samples', () => {
  registry.heartbeat(id, { latencyP50Ms: 7, latencyP95Ms: 9 })
  stats.taskEnded(id, 'completed', 5000)
  expect(seen()).toMatchObject({ latencyP50Ms: 7, latencyP95Ms: 9 })
})

test('an agent is ejected after five consecutive failures, and an answered request resets the count', async () => {
  for (let time = 0; time < 4; time += 1) stats.requestFailed(id)
  stats.requestAnswered(id)
  for (let time = 0; time < 4; time += 1) stats.requestFailed(id)
  expect(registry.find(id)?.quarantine).toBeUndefined()
  stats.requestFailed(id)
  await eject().toBe(now + 1000)
})

test('failures during an ejection do not extend it', async () => {
  for (let time = 0; time < 50; time += 1) stats.requestFailed(id)
  await eject().toBe(now + 1000)
  for (let time = 0; time < 50; time += 1) stats.requestFailed(id)
  // The registry serializes writes, so all earlier ones have finished when this one resolves.
  await registry.admit(id, 'operator')
  expect(registry.find(id)?.quarantine?.until).toBe(now + 1000)
})

test('an ejected agent may still introspect tokens, but an agent quarantined by an operator may not', async () => {
  const about = { name: 'own', description: '', url: 'http://y', card: {}, skills: [], owner: 'did:x:own' }
  const proven = { ...about, did: 'did:x:own', verified: true, admitted: true }
  const entry = await registry.register({ ...proven, origin: 'registered' })
  expect(registry.isTrusted('did:x:own')).toBe(true)
  await registry.eject(entry.id, 'repeated failures', now + 1000)
  expect(registry.isTrusted('did:x:own')).toBe(true)
  await registry.quarantine(entry.id, 'operator', 'lies')
  expect(registry.isTrusted('did:x:own')).toBe(false)
})

test('the first failure after a successful probe ejects the agent for twice as long', async () => {
  let responses = false
  const options = { registry, log, everyMs: 3_600_000, now: () => now, probe: async () => responses }
  await using keeper = new LeaseKeeper({ ...options, probed: stats.probed.bind(stats) })
  registry.heartbeat(id, {})
  for (let time = 0; time < 5; time += 1) stats.requestFailed(id)
  await eject().toBe(now + 1000)
  const round = async () => {
    await keeper.round()
    await keeper.probed()
  }
  await round()
  expect(registry.find(id)?.quarantine?.until).toBe(now + 1000)
  now += 1000
  await round()
  await eject().toBe(now + 2000)
  now += 2000
  responses = true
  await round()
  expect(registry.find(id)?.quarantine).toBeUndefined()
  stats.requestFailed(id)
  await eject().toBe(now + 4000)
})

test('only an operator can end a quarantine imposed by an operator', async () => {
  await registry.quarantine(id, 'operator', 'lies')
  for (let time = 0; time < 5; time += 1) stats.requestFailed(id)
  await stats.probed(id, true)
  expect(registry.find(id)?.quarantine).toMatchObject({ by: 'operator' })
})

test('failures of a supervised process that has ended do not count against its successor', async () => {
  const about = { name: 'own', description: '', card: {}, skills: [], owner: 'own', verified: true }
  const own = { ...about, origin: 'supervised', admitted: true, url: 'http://y' } as const
  const entry = await registry.register(own)
  const figures = () => {
    stats.publish()
    return registry.find(entry.id)?.measurements
  }
  for (let time = 0; time < 6; time += 1) stats.taskEnded(entry.id, 'completed')
  for (let time = 0; time < 6; time += 1) stats.requestAnswered(entry.id)
  for (let time = 0; time < 3; time += 1) stats.requestFailed(entry.id)
  stats.requestAnswered(entry.id)
  expect(figures()).toMatchObject({ samples: 9, successShare: 0.6667 })
  for (let time = 0; time < 3; time += 1) stats.requestFailed(entry.id)
  expect(figures()).toMatchObject({ samples: 12, successShare: 0.5 })
  now += 1
  registry.setStatus(entry.id, 'starting')
  expect(figures()?.successShare).toBeCloseTo(0.6667, 3)
  await registry.register(own)
  stats.requestAnswered(entry.id)
  expect(figures()?.successShare).toBeCloseTo(0.6667, 3)
})

test('a restarting supervised process is not ejected, and the new process starts without the old ejection', async () => {
  const about = { name: 'own', description: '', card: {}, skills: [], owner: 'own', verified: true }
  const own = { ...about, origin: 'supervised', admitted: true } as const
  const entry = await registry.register({ ...own, url: 'http://y' })
  for (let time = 0; time < 5; time += 1) stats.requestFailed(entry.id)
  await expect.poll(() => registry.find('own')?.quarantine?.until).toBe(now + 1000)
  registry.setStatus(entry.id, 'starting')
  const again = await registry.register({ ...own, url: 'http://y' })
  expect([again.status, again.quarantine]).toEqual(['ready', undefined])
  registry.setStatus(entry.id, 'starting')
  for (let time = 0; time < 5; time += 1) stats.requestFailed(entry.id)
  // The registry serializes writes, so all earlier ones have finished when this one resolves.
  await registry.admit(entry.id, 'operator')
  expect(registry.find('own')?.quarantine).toBeUndefined()
  await registry.quarantine(entry.id, 'operator', 'lies')
  expect((await registry.register({ ...own, url: 'http://y' })).quarantine).toMatchObject({ by: 'operator' })
})
