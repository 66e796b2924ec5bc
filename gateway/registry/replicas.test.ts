import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase, type SqliteDatabase } from '@parley/kit/database/sqlite/database'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { gatewayMigrations } from '../store/sqlite/schema.ts'
import type { Announcement } from './entry.ts'
import { Registry } from './registry.ts'
import { SqliteRegistryStore } from './store/sqlite/registry.ts'

const did = 'did:parley:alice:agent:11111111-2222-4333-8444-555555555555'
const announcement: Announcement = {
  name: 'worker',
  description: 'Works',
  did,
  keys: ['key'],
  url: 'http://127.0.0.1:1',
  card: { name: 'worker' },
  skills: [],
  owner: did,
  origin: 'registered',
  verified: true,
  admitted: true,
  admittedBy: 'open',
}
const [first, second] = [randomUUID(), randomUUID()]

let folder: string
let database: SqliteDatabase
let registry: Registry
let clock: number

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-replicas-'))
  database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  clock = 1_000_000
  registry = await Registry.open(new SqliteRegistryStore(database), { now: () => clock })
})
afterEach(async () => {
  await database[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const come = (replicaId: string, url: string, more: Partial<Announcement> = {}) =>
  registry.register({ ...announcement, replicaId, url, ...more })
const urls = () => registry.find(did)?.replicas?.map(({ url }) => url)

test('a second process that proved the key is added to the first', async () => {
  await come(first, 'http://127.0.0.1:1')
  await come(second, 'http://127.0.0.1:2')
  expect(urls()).toEqual(['http://127.0.0.1:1', 'http://127.0.0.1:2'])
  expect(registry.find(did)?.url).toBe('http://127.0.0.1:1')
})

test('the number of processes is limited, and a process that registers again replaces its own entry', async () => {
  const ids = Array.from({ length: 64 }, () => randomUUID())
  for (const [at, id] of ids.entries()) await come(id, `http://127.0.0.1:${at + 1}`)
  await expect(come(first, 'http://127.0.0.1:100')).rejects.toMatchObject({
    error: 'Conflict',
    data: { reason: 'too_many_replicas' },
  })
  await come(ids[0] as string, 'http://127.0.0.1:101')
  await come(second, 'http://127.0.0.1:2')
  expect(urls()).toHaveLength(64)
})

test('a process that does not prove the key is not added', async () => {
  await come(first, 'http://127.0.0.1:1')
  await expect(come(second, 'http://127.0.0.1:2', { verified: false })).rejects.toMatchObject({
    data: { reason: 'did' },
  })
  expect(urls()).toEqual(['http://127.0.0.1:1'])
})

test('an agent without a proven key has only one address, whatever its replica ids', async () => {
  const plain = { verified: false }
  await come(first, 'http://127.0.0.1:1', plain)
  await come(second, 'http://127.0.0.1:2', plain)
  expect([urls(), registry.find(did)?.url]).toEqual([undefined, 'http://127.0.0.1:2'])
})

test('a new process at the same address replaces the old one', async () => {
  await come(first, 'http://127.0.0.1:1')
  const { id } = await come(second, 'http://127.0.0.1:1')
  expect(registry.find(did)?.replicas?.map((one) => one.id)).toEqual([second])
  expect(() => registry.heartbeat(id, {}, first)).toThrow(
    expect.objectContaining({ data: { reason: 'replica' } }),
  )
})

test('an agent that registers again without a replica id replaces its earlier addresses', async () => {
  await come(first, 'http://127.0.0.1:1')
  await registry.register({ ...announcement, url: 'http://127.0.0.1:3' })
  expect([urls(), registry.find(did)?.url]).toEqual([undefined, 'http://127.0.0.1:3'])
})

test('the figures of all replicas are combined, and their growth is computed per replica', async () => {
  const { id } = await come(first, 'http://127.0.0.1:1')
  await come(second, 'http://127.0.0.1:2')
  registry.heartbeat(id, { completed: 10, queueDepth: 3, latencyP50Ms: 10, latencyP95Ms: 20 }, first)
  registry.heartbeat(id, { completed: 5, queueDepth: 4, latencyP50Ms: 30, latencyP95Ms: 90 }, second)
  expect(registry.find(did)?.load).toEqual({
    completed: 15,
    queueDepth: 4,
    latencyP50Ms: 20,
    latencyP95Ms: 90,
  })
  const { before, now } = registry.heartbeat(id, { completed: 7 }, second)
  expect([before.completed, now.completed]).toEqual([5, 7])
})

test('a silent replica is removed after three leases while another keeps the agent ready', async () => {
  const { id } = await come(first, 'http://127.0.0.1:1')
  await come(second, 'http://127.0.0.1:2')
  clock += 80_000
  registry.heartbeat(id, {}, second)
  clock += 20_000
  expect(registry.expireLeases()).toEqual([])
  expect([urls(), registry.find(did)?.status]).toEqual([['http://127.0.0.1:2'], 'ready'])
  clock += 100_000
  expect(registry.expireLeases()).toHaveLength(1)
  expect(registry.find(did)?.status).toBe('unreachable')
  await come(second, 'http://127.0.0.1:2')
  await registry.leaveReplica(id, second)
  expect(registry.find(did)).toBeUndefined()
})
