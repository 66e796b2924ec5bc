import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase, type SqliteDatabase } from '@parley/kit/database/sqlite/database'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { gatewayMigrations } from '../store/sqlite/schema.ts'
import type { Announcement } from './entry.ts'
import { Registry } from './registry.ts'
import { SqliteRegistryStore } from './store/sqlite/registry.ts'

let folder: string
let database: SqliteDatabase | undefined

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-joining-'))
})

afterEach(async () => {
  await database?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

async function openRegistry(): Promise<Registry> {
  await database?.[Symbol.asyncDispose]()
  database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  return Registry.open(new SqliteRegistryStore(database))
}

const withoutDid: Announcement = {
  name: 'Analyst',
  description: '',
  url: 'https://alice.example',
  card: { name: 'Analyst' },
  skills: [],
  owner: 'carol',
  origin: 'registered',
  verified: false,
  admitted: false,
}
const unproven: Announcement = {
  ...withoutDid,
  did: 'did:parley:alice:agent:11111111-2222-4333-8444-555555555555',
  keys: ['key-1'],
}

const relay = {
  url: 'https://alice.example/rpc',
  dialect: 'a2a-v1',
  version: '1.0',
  streaming: true,
  security: [],
  unsupportedSecurity: false,
}
const foreign: Announcement = { ...withoutDid, relay, cardSignature: { verified: false, reason: 'unsigned' } }
const signed: Announcement = {
  ...foreign,
  verified: true,
  cardSignature: { verified: true, kid: 'did:web:alice.example#1' },
}

test.each<[string, Announcement, Partial<Announcement>, string]>([
  ['of another owner, by a signed card', foreign, { ...signed, owner: 'mallory' }, 'owner'],
  ['of another owner, if both are signed', signed, { owner: 'mallory' }, 'owner'],
  ['that was signed, by an unsigned card', signed, foreign, 'did'],
  [
    'that another DID has signed',
    signed,
    { cardSignature: { verified: true, kid: 'did:key:z6Mk#z6Mk' } },
    'key',
  ],
  ['with a DID, by a signed card', unproven, { ...signed, owner: 'mallory' }, 'slug'],
])('a registration does not replace a foreign agent %s', async (_what, known, change, reason) => {
  const registry = await openRegistry()
  await registry.register(known)
  const { did: _none, ...next } = { ...known, ...change }
  await expect(registry.register(next)).rejects.toMatchObject({ error: 'Conflict', data: { reason } })
})

test('a foreign agent that signs its card becomes verified, and may use another key of the same DID', async () => {
  const registry = await openRegistry()
  const { id } = await registry.register(foreign)
  expect(await registry.register(signed)).toMatchObject({ id, verified: true })
  const kid = 'did:web:alice.example#2'
  expect(await registry.register({ ...signed, cardSignature: { verified: true, kid } })).toMatchObject({
    id,
    verified: true,
    cardSignature: { kid },
  })
})

const bearer = { kind: 'bearer' as const }
const otherRelay = { ...relay, url: 'https://b.example/rpc' }
test.each<[string, Announcement, Partial<Announcement>, boolean]>([
  ['another path', foreign, { relay: { ...relay, url: 'https://alice.example/v2' } }, true],
  ['another origin', foreign, { relay: otherRelay }, false],
  ['another security scheme', foreign, { relay: { ...relay, security: [bearer] } }, false],
  ['another origin, with signed cards', signed, { relay: otherRelay }, true],
])('a foreign agent whose interface has %s', async (_what, known, change, isAdmitted) => {
  const registry = await openRegistry()
  const { id } = await registry.register(known)
  await registry.admit(id, 'operator')
  expect((await registry.register({ ...known, ...change })).admitted).toBe(isAdmitted)
})

test('the URL of a foreign card is a recorded change, and new signatures are not', async () => {
  const registry = await openRegistry()
  await registry.register({ ...foreign, card: { url: 'https://alice.example/a', signatures: ['1'] } })
  const { cardChanges } = await registry.register({
    ...foreign,
    card: { url: 'https://alice.example/b', signatures: ['2'] },
  })
  expect(cardChanges?.map(({ field }) => field)).toEqual(['url'])
})

test.each([
  ['removed', {}, true],
  ['at another address', { url: 'https://b.example' }, false],
  ['of another owner', { owner: 'mallory' }, false],
])('the gateway does not renew an entry that is %s', async (_what, change, isRemoved) => {
  const registry = await openRegistry()
  const { id } = await registry.register(foreign)
  if (isRemoved) await registry.remove(id)
  const renewal = registry.register({ ...foreign, ...change, renews: id })
  await expect(renewal).rejects.toMatchObject({ data: { reason: 'changed' } })
  expect(registry.all()).toHaveLength(isRemoved ? 0 : 1)
})
