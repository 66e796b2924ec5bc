import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { timestamp } from '@parley/wire/model/timestamp'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { gatewayMigrations } from '../store/sqlite/schema.ts'
import { readCard } from './card.ts'
import type { AgentEntry, Announcement } from './entry.ts'
import { EntryIndex } from './entry-index.ts'
import { Registry } from './registry.ts'
import { slugOf } from './slug.ts'
import { SqliteRegistryStore } from './store/sqlite/registry.ts'

const did = (id: string) => `did:parley:alice:agent:${id}`
const uuid = '11111111-2222-4333-8444-555555555555'

function announcement(changes: Partial<Announcement> = {}): Announcement {
  const card = readCard({ name: 'Data Analyst', did: did(uuid), skills: [{ id: 'chart' }] })
  return {
    ...card,
    url: 'http://127.0.0.1:7401',
    owner: did(uuid),
    origin: 'registered',
    keys: ['key-1'],
    verified: false,
    admitted: true,
    ...changes,
  } as Announcement
}

let folder: string
const open: AsyncDisposable[] = []

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-registry-'))
})

afterEach(async () => {
  while (open.length > 0) await open.pop()?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

/** Opens a registry over the test's database and closes the earlier one. */
async function openRegistry(now = 1_000_000) {
  await open.pop()?.[Symbol.asyncDispose]()
  const database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  open.push(database)
  let clock = now
  const registry = await Registry.open(new SqliteRegistryStore(database), { now: () => clock })
  return { registry, database, pass: (ms: number) => (clock += ms) }
}

test.each([
  ['calculator', 'calculator'],
  ['Data Analyst', 'data-analyst'],
  ['  Résumé_Maker 2.0! ', 'resume-maker-2-0'],
  ['--a--', 'a'],
  ['🙂', undefined],
  ['../..', undefined],
  [uuid.toUpperCase(), undefined],
  ['x'.repeat(200), 'x'.repeat(63)],
])('the name %j gets the slug %j', (name, slug) => {
  expect(slugOf(name)).toBe(slug)
})

test('an agent is found by its slug, DID and id, and the id is part of the DID', async () => {
  const { registry } = await openRegistry()
  const entry = await registry.register(announcement())
  expect(entry).toMatchObject({ id: uuid, slug: 'data-analyst', status: 'ready', admitted: true })
  for (const name of ['data-analyst', did(uuid), uuid]) expect(registry.find(name)).toEqual(entry)
  expect(registry.find('nobody')).toBeUndefined()
})

test.each<[string, Partial<Announcement>]>([
  ['a DID of another method', { did: `did:x:${uuid}` }],
  ['a did:parley with the same key', { did: `did:parley:mallory:agent:${uuid}` }],
])('an agent that registers %s ending like another agent’s DID gets a new id', async (_what, changes) => {
  const { registry } = await openRegistry()
  const victim = await registry.register(announcement())
  const other = { name: 'Mallory', owner: 'mallory', url: 'http://127.0.0.1:9999', ...changes }
  expect((await registry.register(announcement(other))).id).not.toBe(uuid)
  expect(registry.find(uuid)).toEqual(victim)
  const { registry: again } = await openRegistry()
  expect(again.find(did(uuid))).toMatchObject({ id: uuid, url: victim.url })
})

test('the last part of another method’s DID is not used as the id even if it is free', async () => {
  const { registry } = await openRegistry()
  expect((await registry.register(announcement({ did: `did:x:${uuid}` }))).id).not.toBe(uuid)
})

test('a new entry never replaces a stored one', async () => {
  const { registry, database } = await openRegistry()
  const entry = await registry.register(announcement())
  const store = new SqliteRegistryStore(database)
  await expect(store.add({ ...entry, slug: 'other', did: 'did:x:y' })).rejects.toThrow('UNIQUE')
  expect(await store.all()).toMatchObject([{ entry: { slug: 'data-analyst' } }])
})

test('an id takes precedence over a slug', () => {
  const entry = { ...announcement(), id: uuid, slug: 'victim' } as AgentEntry
  const named = { ...entry, id: 'other', slug: uuid, did: did('other'), url: 'http://127.0.0.1:9999' }
  expect(new EntryIndex([entry, named]).find(uuid)).toBe(entry)
})

test('an agent renews its entry at its new address', async () => {
  const { registry } = await openRegistry()
  const first = await registry.register(announcement())
  const again = await registry.register(announcement({ url: 'http://127.0.0.1:9999' }))
  expect(again).toMatchObject({
    id: first.id,
    url: 'http://127.0.0.1:9999',
    registeredAt: first.registeredAt,
  })
  expect(registry.all()).toHaveLength(1)
})

test('verification and admission are kept when the agent registers again', async () => {
  const { registry } = await openRegistry()
  await registry.register(announcement({ verified: true, admitted: true }))
  const again = await registry.register(announcement({ verified: false, admitted: false }))
  expect(again).toMatchObject({ verified: true, admitted: true })
})

test.each<[string, Partial<Announcement>]>([
  ['another DID with the same name', { did: did('99999999-2222-4333-8444-555555555555') }],
  ['no DID with the same name', { did: undefined as never }],
  ['another owner with the same DID', { owner: 'mallory' }],
])('an agent that tries to take over an entry is refused with -32043: %s', async (_what, changes) => {
  const { registry } = await openRegistry()
  const entry = await registry.register(announcement())
  await expect(registry.register(announcement(changes))).rejects.toMatchObject({ code: -32043, status: 409 })
  expect(registry.all()).toEqual([entry])
})

test('only one of two concurrent registrations with the same slug succeeds', async () => {
  const { registry } = await openRegistry()
  const other = announcement({ did: did('99999999-2222-4333-8444-555555555555') })
  const results = await Promise.allSettled([registry.register(announcement()), registry.register(other)])
  expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected'])
})

test('an agent becomes unreachable after three missed leases but keeps its entry, and a heartbeat makes it ready', async () => {
  const { registry, pass } = await openRegistry()
  const entry = await registry.register(announcement())
  pass(3 * registry.leaseMs - 1)
  expect(registry.expireLeases()).toEqual([])
  pass(1)
  expect(registry.expireLeases().map(({ slug }) => slug)).toEqual(['data-analyst'])
  expect(registry.find(entry.id)).toMatchObject({ status: 'unreachable' })
  registry.heartbeat(entry.id, { queueDepth: 3 })
  expect(registry.find(entry.id)).toMatchObject({
    status: 'ready',
    sendsHeartbeats: true,
    load: { queueDepth: 3 },
  })
})

test('a heartbeat does not change the figures that it does not contain', async () => {
  const { registry } = await openRegistry()
  const { id } = await registry.register(announcement())
  registry.heartbeat(id, { queueDepth: 3, latencyP50Ms: 20 })
  expect(registry.heartbeat(id, { queueDepth: 0 }).entry.load).toEqual({ queueDepth: 0, latencyP50Ms: 20 })
})

test('after a restart, registered agents have a new lease and supervised agents wait for their supervisor', async () => {
  const { registry } = await openRegistry()
  await registry.register(announcement())
  await registry.register(announcement({ name: 'calc', did: did('x'), origin: 'supervised', owner: 'calc' }))
  registry.heartbeat(uuid, { activeTasks: 2 })
  await registry.flush()
  const later = 50_000_000
  const { registry: again } = await openRegistry(later)
  expect(again.find(uuid)).toMatchObject({
    status: 'ready',
    leaseUntil: later + 30_000,
    load: { activeTasks: 2 },
  })
  expect(again.bySlug('calc')).toMatchObject({ status: 'unreachable' })
})

test('the supervisor can change the OAuth client of its agent', async () => {
  const { registry } = await openRegistry()
  await registry.register(announcement({ origin: 'supervised' }))
  const again = await registry.register(announcement({ origin: 'supervised', owner: 'client-2' }))
  expect(again.owner).toBe('client-2')
})

test('a name without letters or digits is refused', async () => {
  const { registry } = await openRegistry()
  await expect(registry.register(announcement({ name: '☃' }))).rejects.toMatchObject({ code: -32602 })
})

test('a failed write is reported and retried by the next flush', async () => {
  const { registry, database } = await openRegistry()
  const { id } = await registry.register(announcement())
  registry.heartbeat(id, { queueDepth: 7 })
  database.statement('ALTER TABLE registry_agents RENAME TO away').run()
  await expect(registry.flush()).rejects.toMatchObject({ name: 'Error' })
  database.statement('ALTER TABLE away RENAME TO registry_agents').run()
  await registry.flush()
  const { registry: again } = await openRegistry()
  expect(again.find(id)?.load).toEqual({ queueDepth: 7 })
})

test('a removed agent stays removed after a restart', async () => {
  const { registry } = await openRegistry()
  const { id } = await registry.register(announcement())
  await registry.remove(id)
  expect(registry.find('data-analyst')).toBeUndefined()
  const { registry: again } = await openRegistry()
  expect(again.all()).toEqual([])
})

test('a change that may reduce access returns after the cached introspection responses were invalidated', async () => {
  const { registry } = await openRegistry()
  const { id } = await registry.register(announcement({ verified: true }))
  const events: unknown[] = []
  registry.listeners.onOutdated(async (change) => {
    events.push(change)
    await new Promise((resolve) => setTimeout(resolve, 30))
    events.push('invalidated')
  })
  const policy = { rules: [], default: 'deny', changedAt: timestamp(), changedBy: 'operator' } as const
  await registry.setPolicy(id, { ...policy, rules: [] }, () => {})
  events.push('restricted')
  await registry.quarantine(id, 'operator', 'lies')
  events.push('quarantined')
  expect(registry.isTrusted(did(uuid))).toBe(false)
  const client = did(uuid)
  expect(events).toEqual([
    { policy: true },
    'invalidated',
    'restricted',
    { client },
    'invalidated',
    'quarantined',
  ])
})

test('the revision changes with lists of agents and skills, and not with a heartbeat', async () => {
  const { registry } = await openRegistry()
  const entry = await registry.register(announcement())
  const registered = registry.revision
  registry.heartbeat(entry.id, { activeTasks: 3 })
  registry.setStatus(entry.id, 'unreachable')
  expect(registry.revision).toBe(registered)
  const card = readCard({ name: 'Data Analyst', did: did(uuid), skills: [{ id: 'table' }] })
  await registry.register(announcement(card))
  const renewed = registry.revision
  expect(renewed).not.toBe(registered)
  await registry.leave(entry.id)
  expect(registry.revision).not.toBe(renewed)
})
