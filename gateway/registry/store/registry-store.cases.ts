import { randomUUID } from 'node:crypto'
import { timestamp } from '@parley/wire/model/timestamp'
import { beforeEach, describe, expect, test } from 'vitest'
import type { AgentEntry } from '../entry.ts'
import type { RegistryStore } from './registry-store.ts'

/** Returns an entry with all optional fields. */
export function sampleEntry(more: Partial<AgentEntry> = {}): AgentEntry {
  const id = more.id ?? randomUUID()
  return {
    id,
    slug: `agent-${id.slice(0, 8)}`,
    name: 'Agent $where',
    description: 'It "$gt": {} a.b',
    did: `did:parley:alice:agent:${id}`,
    url: 'http://127.0.0.1:7401',
    card: { $set: { 'a.b': 1 }, name: 'Agent' },
    skills: [],
    owner: 'alice',
    origin: 'registered',
    verified: true,
    admitted: true,
    status: 'ready',
    since: timestamp(),
    registeredAt: timestamp(),
    lastSeen: timestamp(),
    leaseUntil: 1_790_000_000_123,
    sendsHeartbeats: true,
    load: { queueDepth: 2 },
    measurements: { samples: 1.5, successShare: 0.5 },
    ...more,
  }
}

/** Defines conformance cases for adapters of the registry store. `open` returns an empty store for each test. */
export function registryStoreCases(name: string, open: () => Promise<RegistryStore>): void {
  let store: RegistryStore
  beforeEach(async () => {
    store = await open()
  })
  const entries = async () => (await store.all()).map(({ entry }) => entry)

  describe(`the registry in ${name}`, () => {
    test('an entry is returned as it was added and then as it was replaced', async () => {
      const entry = sampleEntry()
      const revision = await store.add(entry)
      expect(await store.all()).toEqual([{ entry, revision }])
      const { did: _, ...without } = { ...entry, admitted: false, leaseUntil: 1_790_000_000_999 }
      await store.replace(without, revision)
      expect(await entries()).toEqual([without])
    })

    test.each(['id', 'slug', 'did'] as const)('a second entry with the same %s is refused', async (field) => {
      const entry = sampleEntry()
      await store.add(entry)
      await expect(store.add(sampleEntry({ [field]: entry[field] }))).rejects.toBeInstanceOf(Error)
      expect(await entries()).toEqual([entry])
    })

    test('the store accepts several entries without a DID', async () => {
      const { did: _, ...none } = sampleEntry()
      await store.add(none)
      await store.add({ ...none, id: randomUUID(), slug: 'other' })
      expect(await store.all()).toHaveLength(2)
    })

    test('a removed entry no longer exists and can be added again', async () => {
      const entry = sampleEntry()
      await store.remove(entry.id, await store.add(entry))
      expect(await store.all()).toEqual([])
      await store.add(entry)
      expect(await entries()).toEqual([entry])
    })

    test('an update of lease and load is written with all its figures', async () => {
      const entry = sampleEntry()
      await store.add(entry)
      const signs = {
        status: 'unreachable',
        load: { activeTasks: 1 },
        leaseUntil: 1_790_000_000_124,
      } as const
      await store.saveSigns([{ entry: { ...entry, ...signs }, heard: [], gone: [] }])
      expect(await entries()).toEqual([{ ...entry, ...signs }])
    })

    test('ping reaches the storage', async () => {
      await expect(store.ping()).resolves.toBeUndefined()
    })
  })
}
