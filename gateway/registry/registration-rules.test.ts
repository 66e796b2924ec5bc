import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase, type SqliteDatabase } from '@parley/kit/database/sqlite/database'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { gatewayMigrations } from '../store/sqlite/schema.ts'
import type { Announcement } from './entry.ts'
import { Registry } from './registry.ts'
import type { RegistryOptions } from './registry-options.ts'
import { SqliteRegistryStore } from './store/sqlite/registry.ts'

const did = 'did:parley:alice:agent:11111111-2222-4333-8444-555555555555'
const other = 'did:parley:bob:agent:99999999-2222-4333-8444-555555555555'
const skill = { id: 'chart', name: 'Chart', description: '', tags: [], input_modes: [], output_modes: [] }

const proven: Announcement = {
  name: 'Analyst',
  description: '',
  did,
  url: 'https://alice.example',
  card: { name: 'Analyst', executionCost: { amount: '0.01' } },
  skills: [skill],
  owner: did,
  origin: 'registered',
  keys: ['key-1'],
  verified: true,
  admitted: false,
}
const { did: _did, keys: _keys, ...without } = proven
const withoutDid: Announcement = { ...without, verified: false, owner: 'carol' }
const unproven: Announcement = { ...proven, verified: false, owner: 'carol' }

let folder: string
let database: SqliteDatabase | undefined

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-joining-'))
})

afterEach(async () => {
  await database?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

async function openRegistry(options: RegistryOptions = {}): Promise<Registry> {
  await database?.[Symbol.asyncDispose]()
  database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  return Registry.open(new SqliteRegistryStore(database), options)
}

test.each<[string, Announcement, Partial<Announcement>, string]>([
  ['the slug, with another DID', proven, { did: other, url: 'https://m.example' }, 'slug'],
  ['the address, with another DID and name', proven, { did: other, name: 'Mallory' }, 'url'],
  ['the DID without a proof', proven, { verified: false, owner: 'mallory' }, 'owner'],
  ['the DID with a proof, by another client', proven, { owner: 'mallory' }, 'owner'],
  ['the address, by the owner without a proof', proven, { verified: false, url: 'https://b.example' }, 'did'],
  ['the key, by the owner without a proof', proven, { verified: false, keys: ['key-2'] }, 'did'],
  ['the key, with a proof by a key that the old one did not sign', proven, { keys: ['key-2'] }, 'key'],
  ['the key, and the document is missing', proven, { keys: [] }, 'key'],
  [
    'the slug of an agent without a DID, at another address',
    withoutDid,
    { ...withoutDid, url: 'https://m.example' },
    'slug',
  ],
  ['an agent without a DID, by another client', withoutDid, { ...withoutDid, owner: 'mallory' }, 'owner'],
  ['the DID of a supervised agent', { ...proven, origin: 'supervised' }, {}, 'did'],
])('a client that tries to take over %s receives -32043', async (_what, first, changes, reason) => {
  const registry = await openRegistry()
  const entry = await registry.register(first)
  const second = { ...(first.did === undefined ? {} : proven), ...changes } as Announcement
  await expect(registry.register(second)).rejects.toMatchObject({ code: -32043, data: { reason } })
  expect(registry.all()).toEqual([entry])
})

const web = { ...proven, did: 'did:web:alice.example' }
const history = { keyHistory: [{ publicKeyBase58: 'key-1' }, { publicKeyBase58: 'key-2' }] }

test.each<[string, Partial<Announcement>]>([
  ['an unsigned history', { keys: ['key-2'], document: history }],
  ['an invalid history', { keys: ['key-2'], document: { keyHistory: 5 } }],
  ['the old key next to the proven one', { keys: ['key-1', 'key-2'] }],
])('a changed key of a did:web is refused with %s', async (_what, changes) => {
  const registry = await openRegistry()
  const entry = await registry.register(web)
  await expect(registry.register({ ...web, ...changes })).rejects.toMatchObject({ data: { reason: 'key' } })
  expect(registry.all()).toEqual([entry])
})

test('an additional key next to the proven one is not treated as a change', async () => {
  const registry = await openRegistry()
  await registry.register(web)
  expect(await registry.register({ ...web, keys: ['key-2', 'key-1'] })).toMatchObject({ verified: true })
})

test('an invalid key history of a did:parley is treated as missing', async () => {
  const registry = await openRegistry()
  await registry.register(proven)
  const changed = { ...proven, keys: ['key-2'], document: { keyHistory: 5 } }
  await expect(registry.register(changed)).rejects.toMatchObject({ data: { reason: 'key' } })
})

test.each<[string, Announcement, Announcement]>([
  ['the agent itself after registration by another client', { ...proven, owner: 'carol' }, proven],
  ['with a proof after one without', unproven, { ...proven, owner: 'dave', url: 'https://d.example' }],
  ['a later key signed by the old one', proven, { ...proven, keys: ['key-1', 'key-2'] }],
  ['another address with a proof', proven, { ...proven, url: 'https://b.example' }],
  ['the supervisor, which verified the key', proven, { ...proven, origin: 'supervised', owner: 'client-2' }],
])('an agent can renew its entry: %s', async (_what, first, second) => {
  const registry = await openRegistry()
  const { id } = await registry.register(first)
  const { owner, url, keys } = second
  expect(await registry.register(second)).toMatchObject({ id, owner, url, keys, verified: true })
  expect(registry.all()).toHaveLength(1)
})

const squatting = { ...withoutDid, owner: 'mallory' }

test.each<[string, Announcement, Announcement]>([
  ['its DID, at its address', { ...unproven, owner: 'mallory' }, proven],
  ['its DID, at another address', { ...unproven, owner: 'mallory', url: 'https://m.example' }, proven],
  ['its address and slug, without a DID', squatting, proven],
  ['its address, under another name', { ...squatting, name: 'Mallory' }, proven],
  ['its address, with another unproven DID', { ...squatting, did: other }, proven],
])('an unverified entry never blocks the owner of a DID: %s', async (_what, first, second) => {
  const registry = await openRegistry()
  const { id } = await registry.register({ ...first, admitted: true, admittedBy: 'operator' })
  const entry = await registry.register(second)
  expect(entry).toMatchObject({ did, owner: did, url: proven.url, verified: true })
  expect(registry.all()).toEqual([entry])
  expect((await openRegistry()).all()).toMatchObject([{ did, owner: did }])
  // The agent does not inherit another agent's admission.
  expect(entry.id !== id && entry.admitted).toBe(false)
})

test.each<[string, Announcement, Announcement]>([
  ['a proven address', { ...proven, did: other, owner: other, keys: ['key-9'] }, proven],
  ['a slug at another address', { ...squatting, url: 'https://m.example' }, proven],
  ['an address, without a proof', squatting, { ...unproven, owner: did }],
])('the owner of a DID cannot take over another agent’s entry: %s', async (_what, first, second) => {
  const registry = await openRegistry()
  const entry = await registry.register(first)
  await expect(registry.register(second)).rejects.toMatchObject({ code: -32043 })
  expect(registry.all()).toEqual([entry])
})

test('a quarantined agent cannot register again at the same address with another DID', async () => {
  const registry = await openRegistry()
  const { id } = await registry.register(squatting)
  await registry.quarantine(id, 'operator', 'lies')
  await expect(registry.register({ ...proven, name: 'Another' })).rejects.toMatchObject({
    data: { reason: 'url' },
  })
})

test('an agent keeps its admission at the same address, and at another if it proved its key both times', async () => {
  const registry = await openRegistry()
  const { id } = await registry.register(proven)
  await registry.admit(id, 'operator')
  expect(await registry.register(proven)).toMatchObject({ admitted: true, admittedBy: 'operator' })
  const moved = await registry.register({ ...proven, url: 'https://b.example' })
  expect(moved).toMatchObject({ admitted: true, admittedBy: 'operator' })
})

test('an unproven agent’s admission ends when a proven agent takes its DID at another address', async () => {
  const registry = await openRegistry()
  const { id } = await registry.register(unproven)
  await registry.admit(id, 'operator')
  expect(await registry.register({ ...proven, url: 'https://b.example' })).toMatchObject({ admitted: false })
})

test('an admission by an open registry ends when the registry is closed', async () => {
  const registry = await openRegistry()
  await registry.register({ ...proven, admitted: true, admittedBy: 'open' })
  expect((await openRegistry({ open: false })).find(did)).toMatchObject({ admitted: false })
})

test('changes to a card’s skills, price and other fields are recorded until the agent is admitted', async () => {
  const registry = await openRegistry()
  const { id } = await registry.register(proven)
  const more = { ...skill, id: 'table' }
  const card = { name: 'Analyst', executionCost: { amount: '9' }, version: '2', url: 'https://x.example' }
  const changed = { ...proven, card, skills: [{ ...skill, description: 'Other' }, more] }
  const { cardChanges } = await registry.register(changed)
  expect(cardChanges).toMatchObject([
    { field: 'executionCost', before: { amount: '0.01' }, after: { amount: '9' } },
    { field: 'version', after: '2' },
    { field: 'skills.chart', before: skill },
    { field: 'skills.table', after: more },
  ])
  expect((await registry.register(changed)).cardChanges).toEqual(cardChanges)
  expect((await registry.admit(id, 'operator')).cardChanges).toEqual([])
})

test('recorded changes are limited in number and size', async () => {
  const registry = await openRegistry()
  for (let version = 0; version < 30; version++) {
    const card = { name: 'Analyst', version: String(version), extra: 'x'.repeat(3000 + version) }
    await registry.register({ ...proven, card })
  }
  const changes = registry.find(did)?.cardChanges ?? []
  expect(changes).toHaveLength(50)
  expect(JSON.stringify(changes).length).toBeLessThan(10_000)
})

test('an agent that unregisters is not listed, but its slug and operators’ decisions are kept for its return', async () => {
  const registry = await openRegistry()
  const { id } = await registry.register(proven)
  await registry.leave(id)
  await registry.register(proven)
  await registry.admit(id, 'operator')
  await registry.leave(id)
  const again = await openRegistry()
  expect([again.find(id), again.bySlug('analyst'), again.find(did), again.all()]).toEqual([
    undefined,
    undefined,
    undefined,
    [],
  ])
  const mallory = { ...proven, did: other, owner: other, url: 'https://m.example' }
  await expect(again.register(mallory)).rejects.toMatchObject({ code: -32043 })
  const back = await again.register(proven)
  expect(back).toMatchObject({ id, admitted: true, admittedBy: 'operator', status: 'ready' })
  expect(back.left).toBeUndefined()
})

test('a quarantine survives renewal, unregistering and a restart until it is released', async () => {
  const registry = await openRegistry()
  const { id } = await registry.register(proven)
  await registry.quarantine(id, 'operator', 'lies')
  await registry.register(proven)
  await registry.leave(id)
  const again = await openRegistry()
  expect(await again.register(proven)).toMatchObject({ quarantine: { by: 'operator', reason: 'lies' } })
  expect((await again.release(id)).quarantine).toBeUndefined()
})

test('removing an entry also removes all decisions about it', async () => {
  const registry = await openRegistry()
  const { id } = await registry.register(proven)
  await registry.admit(id, 'operator')
  await registry.remove(id)
  expect(await registry.register(proven)).toMatchObject({ admitted: false })
})

test('the slugs of supervised agents are reserved', async () => {
  const registry = await openRegistry({ reserved: new Set(['analyst']) })
  await expect(registry.register(proven)).rejects.toMatchObject({ code: -32043, data: { reason: 'slug' } })
  expect(await registry.register({ ...proven, origin: 'supervised' })).toMatchObject({ slug: 'analyst' })
})

test('a supervised agent takes its slug from an external agent that registered earlier', async () => {
  const registry = await openRegistry()
  const { id } = await registry.register(proven)
  const house = {
    ...proven,
    did: other,
    owner: other,
    url: 'http://127.0.0.1:1',
    origin: 'supervised',
  } as const
  expect(await registry.register(house)).toMatchObject({ slug: 'analyst', did: other })
  expect(await registry.register(proven)).toMatchObject({ id, slug: 'analyst-2' })
  expect((await openRegistry()).all().map(({ slug, did }) => [slug, did])).toEqual([
    ['analyst', other],
    ['analyst-2', did],
  ])
})

test('an unregistered agent is visible to operators until it is removed', async () => {
  const registry = await openRegistry()
  const { id } = await registry.register(proven)
  await registry.admit(id, 'operator')
  await registry.leave(id)
  expect(registry.left()).toEqual([registry.findIncludingLeft('analyst')])
  await registry.remove(id)
  expect([registry.left(), registry.findIncludingLeft(did)]).toEqual([[], undefined])
  await registry.register({ ...proven, did: other, owner: other })
})

test('an entry removed during a write stays removed', async () => {
  const registry = await openRegistry()
  const { id } = await registry.register(proven)
  await Promise.all([registry.admit(id, 'operator'), registry.remove(id)])
  const again = await registry.register(proven)
  registry.heartbeat(again.id, { queueDepth: 1 })
  const removed = registry.remove(again.id)
  // The removal has started but has not finished.
  for (let step = 0; step < 5; step++) await Promise.resolve()
  await Promise.all([registry.flush(), removed])
  expect(registry.all()).toEqual([])
  expect((await openRegistry()).all()).toEqual([])
})

test.each([
  ['is waiting for its process', { reserved: new Set(['analyst']) }],
  ['has stopped', {}],
])('a supervised agent with a new key keeps its slug once the old one %s', async (_what, reserved) => {
  const ours: Announcement = {
    ...proven,
    origin: 'supervised',
    admitted: true,
    admittedBy: 'supervisor',
    host: 'here',
  }
  const renewed: Announcement = {
    ...ours,
    did: other,
    owner: other,
    keys: ['key-9'],
    url: 'http://127.0.0.1:2',
  }
  const registry = await openRegistry()
  await registry.register(ours)
  await expect(registry.register(renewed)).rejects.toMatchObject({ data: { reason: 'slug' } })
  const later = await openRegistry({ host: 'here', ...reserved })
  await expect(later.register({ ...renewed, host: 'there' })).rejects.toMatchObject({
    data: { reason: 'slug' },
  })
  expect(await later.register(renewed)).toMatchObject({ slug: 'analyst', did: other, status: 'ready' })
  expect(later.find(did)).toBeUndefined()
  expect(later.all()).toHaveLength(1)
  // External agents cannot take a slug in this way.
  later.setStatus(later.find(other)?.id ?? '', 'unreachable')
  await expect(later.register(proven)).rejects.toMatchObject({ data: { reason: 'slug' } })
})
