import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase, type SqliteDatabase } from '@parley/kit/database/sqlite/database'
import { makeLog } from '@parley/kit/process/log'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Registry } from '../registry/registry.ts'
import { registryMigrations, SqliteRegistryStore } from '../registry/registry-sqlite.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { WorkSeen } from './outlier-detector.ts'

const log = makeLog({ level: 'silent', name: 'test' })
let folder: string
let database: SqliteDatabase
let now: number
let registry: Registry
let work: WorkSeen
let id: string

beforeEach(async () => {
  now = Date.now()
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-work-'))
  database = await openDatabase(path.join(folder, 'gateway.db'), registryMigrations)
  registry = await Registry.open(new SqliteRegistryStore(database), { now: () => now })
  work = new WorkSeen({ registry, log, now: () => now, halfLifeMs: 60_000, asideMs: 1000, asideMaxMs: 4000 })
  const about = { name: 'sky', description: '', url: 'http://x', card: {}, skills: [], owner: 'sky' }
  const entry = await registry.register({ ...about, origin: 'registered', verified: true, admitted: true })
  id = entry.id
})

afterEach(async () => {
  work[Symbol.dispose]()
  await registry.flush()
  await database[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const seen = () => {
  work.tell()
  return registry.find(id)?.measurements
}

const aside = () => expect.poll(() => registry.find(id)?.quarantine?.until)

test('what is seen stands on the entry, and counts less as time goes by', () => {
  for (let time = 0; time < 8; time += 1) work.ended(id, 'completed', 100 * (time + 1))
  work.ended(id, 'failed')
  work.ended(id, 'failed')
  expect(seen()).toEqual({
    samples: 10,
    completedTasks: 0,
    successShare: 0.8,
    latencyP50Ms: 500,
    latencyP95Ms: 800,
  })
  now += 60_000
  for (let time = 0; time < 5; time += 1) work.ended(id, 'failed')
  expect(seen()).toMatchObject({ samples: 10, successShare: 0.4 })
})

test('heartbeats count by what their counters grew; a counter that fell began anew; fables are bounded', () => {
  work.told(id, {}, { completed: 3, failed: 1 })
  work.told(id, { completed: 3, failed: 1 }, { completed: 1, failed: 0 })
  expect(seen()).toMatchObject({ samples: 5, successShare: 0.8 })
  work.told(id, {}, { completed: 1_000_000 })
  expect(seen()?.samples).toBe(100)
})

test('many heartbeats add no more than one in the same time', () => {
  for (let time = 1; time <= 50; time += 1)
    work.told(id, { completed: (time - 1) * 100 }, { completed: time * 100 })
  expect(seen()?.samples).toBe(100)
})

test('what an agent tells of itself does not hide that it fails what it is sent', () => {
  for (let time = 0; time < 10; time += 1) {
    work.failed(id)
    work.answered(id)
  }
  work.told(id, {}, { completed: 100 })
  expect(seen()?.successShare).toBe(0.5)
})

test('too few own latencies: what the heartbeat tells counts', () => {
  registry.heartbeat(id, { latencyP50Ms: 7, latencyP95Ms: 9 })
  work.ended(id, 'completed', 5000)
  expect(seen()).toMatchObject({ latencyP50Ms: 7, latencyP95Ms: 9 })
})

test('five failures in a row set it aside; an answer between them does not let it come to that', async () => {
  for (let time = 0; time < 4; time += 1) work.failed(id)
  work.answered(id)
  for (let time = 0; time < 4; time += 1) work.failed(id)
  expect(registry.find(id)?.quarantine).toBeUndefined()
  work.failed(id)
  await aside().toBe(now + 1000)
})

test('while it is aside its failures do not keep it there: its callers still come for their tasks', async () => {
  for (let time = 0; time < 50; time += 1) work.failed(id)
  await aside().toBe(now + 1000)
  for (let time = 0; time < 50; time += 1) work.failed(id)
  // A write of the registry that comes after all that these could have led to.
  await registry.admit(id, 'operator')
  expect(registry.find(id)?.quarantine?.until).toBe(now + 1000)
})

test('an agent that the gateway set aside checks its callers’ tokens as before; one that an operator set aside does not', async () => {
  const about = { name: 'own', description: '', url: 'http://y', card: {}, skills: [], owner: 'did:x:own' }
  const proven = { ...about, did: 'did:x:own', verified: true, admitted: true }
  const entry = await registry.register({ ...proven, origin: 'registered' })
  expect(registry.isTrusted('did:x:own')).toBe(true)
  await registry.setAside(entry.id, 'it failed again and again', now + 1000)
  expect(registry.isTrusted('did:x:own')).toBe(true)
  await registry.quarantine(entry.id, 'operator', 'lies')
  expect(registry.isTrusted('did:x:own')).toBe(false)
})

test('half open: after its probe the first failure sets it aside for twice as long', async () => {
  let answers = false
  const options = { registry, log, everyMs: 3_600_000, now: () => now, probe: async () => answers }
  await using keeper = new LeaseKeeper({ ...options, probed: work.probed.bind(work) })
  registry.heartbeat(id, {})
  for (let time = 0; time < 5; time += 1) work.failed(id)
  await aside().toBe(now + 1000)
  const round = async () => {
    await keeper.round()
    await keeper.probed()
  }
  await round()
  expect(registry.find(id)?.quarantine?.until).toBe(now + 1000)
  now += 1000
  await round()
  await aside().toBe(now + 2000)
  now += 2000
  answers = true
  await round()
  expect(registry.find(id)?.quarantine).toBeUndefined()
  work.failed(id)
  await aside().toBe(now + 4000)
})

test('what an operator decided is the operator’s to take back', async () => {
  await registry.quarantine(id, 'operator', 'lies')
  for (let time = 0; time < 5; time += 1) work.failed(id)
  await work.probed(id, true)
  expect(registry.find(id)?.quarantine).toMatchObject({ by: 'operator' })
})

test('failures of a supervised process that ended are no evidence against its successor; those of one that goes on are', async () => {
  const about = { name: 'own', description: '', card: {}, skills: [], owner: 'own', verified: true }
  const own = { ...about, origin: 'supervised', admitted: true, url: 'http://y' } as const
  const entry = await registry.register(own)
  const figures = () => {
    work.tell()
    return registry.find(entry.id)?.measurements
  }
  for (let time = 0; time < 6; time += 1) work.ended(entry.id, 'completed')
  for (let time = 0; time < 6; time += 1) work.answered(entry.id)
  for (let time = 0; time < 3; time += 1) work.failed(entry.id)
  work.answered(entry.id)
  expect(figures()).toMatchObject({ samples: 9, successShare: 0.6667 })
  for (let time = 0; time < 3; time += 1) work.failed(entry.id)
  expect(figures()).toMatchObject({ samples: 12, successShare: 0.5 })
  now += 1
  registry.setStatus(entry.id, 'starting')
  expect(figures()?.successShare).toBeCloseTo(0.6667, 3)
  await registry.register(own)
  work.answered(entry.id)
  expect(figures()?.successShare).toBeCloseTo(0.6667, 3)
})

test('a supervised process that is being started again is not ejected, and its new process starts without the ejection of the one before', async () => {
  const about = { name: 'own', description: '', card: {}, skills: [], owner: 'own', verified: true }
  const own = { ...about, origin: 'supervised', admitted: true } as const
  const entry = await registry.register({ ...own, url: 'http://y' })
  for (let time = 0; time < 5; time += 1) work.failed(entry.id)
  await expect.poll(() => registry.find('own')?.quarantine?.until).toBe(now + 1000)
  registry.setStatus(entry.id, 'starting')
  const again = await registry.register({ ...own, url: 'http://y' })
  expect([again.status, again.quarantine]).toEqual(['ready', undefined])
  registry.setStatus(entry.id, 'starting')
  for (let time = 0; time < 5; time += 1) work.failed(entry.id)
  // A write of the registry that comes after all that these could have led to.
  await registry.admit(entry.id, 'operator')
  expect(registry.find('own')?.quarantine).toBeUndefined()
  await registry.quarantine(entry.id, 'operator', 'lies')
  expect((await registry.register({ ...own, url: 'http://y' })).quarantine).toMatchObject({ by: 'operator' })
})
