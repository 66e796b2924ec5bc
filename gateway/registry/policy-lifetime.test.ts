import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import type { StoredPolicy } from '@parley/wire/model/policy'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { gatewayMigrations } from '../store/sqlite/schema.ts'
import type { Announcement } from './entry.ts'
import { anonymousCaller } from './policy.ts'
import { Registry } from './registry.ts'
import { SqliteRegistryStore } from './store/sqlite/registry.ts'

const did = (name: string) => `did:parley:alice:${name}:11111111-2222-4333-8444-555555555555`
const policy: StoredPolicy = {
  rules: [{ effect: 'allow', callers: ['client:alice'] }],
  default: 'deny',
  changedAt: '2026-11-22T10:00:00.000000+00:00' as StoredPolicy['changedAt'],
  changedBy: 'operator',
}
const unchecked = () => {}
const alice = { id: 'alice', tags: [] }

let folder: string
const open: AsyncDisposable[] = []

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-policy-'))
})

afterEach(async () => {
  while (open.length > 0) await open.pop()?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

async function openRegistry() {
  await open.pop()?.[Symbol.asyncDispose]()
  const database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  open.push(database)
  return Registry.open(new SqliteRegistryStore(database))
}

const announcement = (changes: Partial<Announcement> = {}): Announcement => ({
  name: 'notes',
  description: '',
  card: { name: 'notes' },
  skills: [],
  url: 'http://127.0.0.1:7401',
  owner: did('notes'),
  did: did('notes'),
  keys: ['key-1'],
  origin: 'supervised',
  verified: true,
  admitted: true,
  ...changes,
})

const sees = (registry: Registry, caller: { id?: string; tags: readonly string[] }) =>
  registry.policies.view(caller, registry).bySlug('notes') !== undefined

test('without a policy, the view of a caller is the registry itself', async () => {
  const registry = await openRegistry()
  await registry.register(announcement())
  expect(registry.policies.view(anonymousCaller, registry)).toBe(registry)
})

test('a policy is stored, and applies after a restart of the gateway', async () => {
  const before = await openRegistry()
  const { id } = await before.register(announcement())
  await before.setPolicy(id, policy, unchecked)
  const after = await openRegistry()
  expect(after.findIncludingLeft(id)?.policy).toEqual(policy)
  expect([sees(after, anonymousCaller), sees(after, { id: 'bob', tags: [] }), sees(after, alice)]).toEqual([
    false,
    false,
    true,
  ])
})

test('a supervised agent with a new key keeps the policy of its name', async () => {
  const registry = await openRegistry()
  const { id } = await registry.register(announcement())
  await registry.setPolicy(id, policy, unchecked)
  registry.setStatus(id, 'unreachable')
  const renewed = await registry.register(
    announcement({ did: did('other'), keys: ['key-2'], owner: did('other') }),
  )
  expect(renewed.did).toBe(did('other'))
  expect(renewed.policy).toEqual(policy)
  expect(sees(registry, anonymousCaller)).toBe(false)
})

test('an agent that proves a key at the address of an unproven one keeps the policy of that address', async () => {
  const registry = await openRegistry()
  const unproven = { verified: false, origin: 'registered', owner: 'bob' } as const
  const { id } = await registry.register(announcement(unproven))
  await registry.setPolicy(id, policy, unchecked)
  const proven = await registry.register(
    announcement({ origin: 'registered', did: did('other'), keys: ['key-2'], owner: did('other') }),
  )
  expect(proven.did).toBe(did('other'))
  expect(proven.policy).toEqual(policy)
})

test('removal keeps the policy, also if the agent has no DID, and a new registration finds it', async () => {
  const registry = await openRegistry()
  const {
    did: _did,
    keys: _keys,
    ...withoutDid
  } = announcement({ owner: 'bob', origin: 'registered', verified: false, admittedBy: 'open' })
  const { id } = await registry.register(withoutDid)
  await registry.setPolicy(id, policy, unchecked)
  await registry.remove(id)
  expect(registry.all()).toEqual([])
  expect(registry.left()).toMatchObject([{ id, admitted: false, policy }])
  expect((await registry.register(withoutDid)).policy).toEqual(policy)
  await registry.leave(id)
  await registry.setPolicy(id, undefined, unchecked)
  expect(registry.left()).toEqual([])
})

test('a view follows changes of the policy and of the skills', async () => {
  const registry = await openRegistry()
  const skill = (name: string) => ({ id: name, name, description: '', tags: [] })
  const skills = [skill('read'), skill('write')] as unknown as Announcement['skills']
  const { id } = await registry.register(announcement({ skills, card: { name: 'notes', skills } }))
  const seen = (caller: string) => {
    const entry = registry.policies.view({ id: caller, tags: [] }, registry).bySlug('notes')
    return entry?.skills.map((one) => one.id)
  }
  expect(seen('bob')).toEqual(['read', 'write'])
  const rules: StoredPolicy['rules'] = [
    { effect: 'allow', callers: ['authenticated'] },
    { effect: 'deny', callers: ['client:bob'], skills: ['write'] },
  ]
  await registry.setPolicy(id, { ...policy, rules }, unchecked)
  expect([seen('bob'), seen('alice')]).toEqual([['read'], ['read', 'write']])
  registry.heartbeat(id, { queueDepth: 3 })
  expect([seen('bob'), seen('alice')]).toEqual([['read'], ['read', 'write']])
  const fewer = [skills[1]] as Announcement['skills']
  await registry.register(announcement({ skills: fewer, card: { name: 'notes', skills: fewer } }))
  expect([seen('bob'), seen('alice')]).toEqual([undefined, ['write']])
  await registry.setPolicy(id, undefined, unchecked)
  expect(seen('bob')).toEqual(['write'])
})

test('a policy that was changed meanwhile is not replaced', async () => {
  const registry = await openRegistry()
  const { id } = await registry.register(announcement())
  const refuse = () => {
    throw new Error('changed')
  }
  await expect(registry.setPolicy(id, policy, refuse)).rejects.toThrow('changed')
  expect(registry.findIncludingLeft(id)?.policy).toBeUndefined()
})

test('many callers share no view', async () => {
  const registry = await openRegistry()
  const { id } = await registry.register(announcement())
  await registry.setPolicy(id, policy, unchecked)
  for (let count = 0; count < 200; count += 1)
    expect(sees(registry, { id: `client-${count}`, tags: [`tag-${count}`] })).toBe(false)
  expect(sees(registry, alice)).toBe(true)
})
