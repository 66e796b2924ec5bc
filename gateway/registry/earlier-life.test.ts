import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { gatewayMigrations } from '../store/sqlite/schema.ts'
import type { Announcement } from './entry.ts'
import { Registry } from './registry.ts'
import type { RegistryOptions } from './registry-options.ts'
import { SqliteRegistryStore } from './store/sqlite/registry.ts'

let folder: string
let stack: AsyncDisposableStack
beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-registry-'))
  stack = new AsyncDisposableStack()
})
afterEach(async () => {
  await stack.disposeAsync()
  await rm(folder, { recursive: true, force: true })
})

const longAgo = 1_000_000

const agent = (name: string, port: number, origin: Announcement['origin'] = 'supervised'): Announcement => ({
  name,
  description: '',
  url: `http://127.0.0.1:${port}`,
  card: {},
  skills: [],
  owner: name,
  did: `did:parley:alice:agent:${name}`,
  origin,
  verified: true,
  admitted: true,
})

/** Returns a store with the supervised agents `ours` and `theirs` from an earlier run that stopped cleanly. */
async function stored() {
  const database = stack.use(await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations))
  const store = new SqliteRegistryStore(database)
  const registry = await Registry.open(store, { now: () => longAgo })
  for (const [at, name] of ['ours', 'theirs'].entries()) {
    const { id } = await registry.register(agent(name, 7401 + at))
    registry.replicaEnded(id, undefined, 'unreachable')
  }
  await registry.flush()
  return store
}

/** Opens the registry a day later. */
async function later(store: SqliteRegistryStore, options: RegistryOptions = {}) {
  let clock = longAgo + 24 * 3_600_000
  const registry = await Registry.open(store, { reserved: new Set(['ours']), now: () => clock, ...options })
  const statusOf = (name: string) => registry.find(name)?.status
  return { registry, statusOf, pass: (ms: number) => (clock += ms) }
}

test('after a restart, an agent that is supervised again is starting and any other is unreachable', async () => {
  const { registry, statusOf, pass } = await later(await stored())
  expect([statusOf('ours'), statusOf('theirs')]).toEqual(['starting', 'unreachable'])
  // The status does not depend on when the agent was last seen.
  pass(registry.leaseMs)
  expect(registry.expireLeases()).toEqual([])
  expect(statusOf('ours')).toBe('starting')
  await registry.register(agent('ours', 7405))
  expect(registry.expireLeases()).toEqual([])
  expect(registry.find('ours')).toMatchObject({ status: 'ready', url: 'http://127.0.0.1:7405' })
})

test('an agent that does not start within three leases is unreachable until it starts', async () => {
  const { registry, statusOf, pass } = await later(await stored())
  pass(3 * registry.leaseMs)
  expect(registry.expireLeases().map(({ slug }) => slug)).toEqual(['ours'])
  expect(statusOf('ours')).toBe('unreachable')
  await registry.register(agent('ours', 7405))
  expect(statusOf('ours')).toBe('ready')
})

test('a late heartbeat that arrives before registration does not route callers to the old address', async () => {
  const { registry, statusOf } = await later(await stored())
  const { id } = registry.find('ours') ?? { id: '' }
  registry.heartbeat(id, { queueDepth: 3 })
  registry.probeSucceeded(id)
  expect(registry.find('ours')).toMatchObject({ status: 'starting', load: { queueDepth: 3 } })
  await registry.register(agent('ours', 7405))
  registry.replicaEnded(id, undefined, 'starting')
  // The agent sent this heartbeat before its process ended.
  registry.heartbeat(id, {})
  expect(statusOf('ours')).toBe('starting')
})

test.each<[string, (registry: Registry, id: string) => Promise<unknown>]>([
  ['ejected', (registry, id) => registry.eject(id, 'it failed', 0)],
  ['admitted', (registry, id) => registry.admit(id, 'operator')],
  ['quarantined', (registry, id) => registry.quarantine(id, 'operator', 'lies')],
  ['released', (registry, id) => registry.release(id)],
])('heartbeats that arrive while the agent is being %s are not lost', async (_what, change) => {
  const store = await stored()
  const { registry, statusOf, pass } = await later(store)
  const { id } = await registry.register(agent('stranger', 7409, 'registered'))
  pass(3 * registry.leaseMs)
  registry.expireLeases()
  expect(statusOf('stranger')).toBe('unreachable')
  const begun = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const replace = store.replace.bind(store)
  store.replace = async (entry) => {
    begun.resolve()
    await goOn.promise
    return replace(entry)
  }
  const changing = change(registry, id)
  await begun.promise
  registry.heartbeat(id, { activeTasks: 1 })
  goOn.resolve()
  await changing
  const known = { status: 'ready', sendsHeartbeats: true, load: { activeTasks: 1 } }
  expect(registry.find(id)).toMatchObject(known)
  await registry.flush()
  expect((await store.all()).find(({ entry }) => entry.id === id)?.entry).toMatchObject(known)
})
