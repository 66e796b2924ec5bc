import { randomUUID } from 'node:crypto'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openGatewayMongodb } from '../../../store/mongodb/database.ts'
import type { Announcement } from '../../entry.ts'
import { Registry } from '../../registry.ts'
import type { RegistryOptions } from '../../registry-options.ts'
import { registryStoreCases } from '../registry-store.cases.ts'
import { EntryChanged } from '../registry-store.ts'
import { mongodbRegistryStore } from './registry.ts'

const all = <T>(count: number, run: (index: number) => Promise<T>) =>
  Promise.allSettled(Array.from({ length: count }, (_, index) => run(index)))

function announcement(more: Partial<Announcement> = {}): Announcement {
  const id = randomUUID()
  return {
    name: `agent ${id.slice(0, 8)}`,
    description: 'A',
    did: `did:parley:alice:agent:${id}`,
    keys: ['key'],
    url: `http://127.0.0.1/${id}`,
    card: { name: 'A' },
    skills: [],
    owner: 'alice',
    origin: 'registered',
    verified: true,
    admitted: true,
    admittedBy: 'open',
    ...more,
  }
}

describe.skipIf(!hasMongodb)('on a MongoDB-compatible server (needs mongod)', () => {
  let server: MongodbServer
  let url = ''
  const opened: AsyncDisposable[] = []
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterEach(async () => {
    while (opened.length > 0) await opened.pop()?.[Symbol.asyncDispose]()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const open = async () => {
    const database = await openGatewayMongodb({ url })
    opened.push(database)
    return mongodbRegistryStore(database)
  }
  registryStoreCases('MongoDB', () => {
    url = server.newUrl()
    return open()
  })

  describe('several gateways', () => {
    let clock = 1_000_000
    const registries = async (count: number, options: RegistryOptions = {}) => {
      url = server.newUrl()
      clock = 1_000_000
      const made: Registry[] = []
      for (let n = 0; n < count; n += 1)
        made.push(await Registry.open(await open(), { now: () => clock, ...options }))
      return made as [Registry, Registry, ...Registry[]]
    }

    test('other gateways see registrations, admissions, ejections, releases and removals at one gateway', async () => {
      const [one, other] = await registries(2)
      const { id } = await one.register(announcement({ admitted: false }))
      await other.sync()
      expect(other.find(id)).toMatchObject({ admitted: false, status: 'ready' })
      await other.admit(id, 'operator')
      await one.sync()
      expect(one.find(id)).toMatchObject({ admitted: true, admittedBy: 'operator' })
      await one.quarantine(id, 'operator', 'bad')
      await other.sync()
      expect(other.find(id)?.quarantine).toMatchObject({ reason: 'bad' })
      await other.release(id)
      await other.remove(id)
      await one.sync()
      expect(one.find(id)).toBeUndefined()
      await one.sync(true)
      expect(one.findIncludingLeft(id)).toBeUndefined()
    })

    test('a gateway that missed a removed entry’s tombstone detects the removal in a thorough synchronization', async () => {
      const [one, other] = await registries(2)
      const stays = await one.register(announcement())
      const { id } = await one.register(announcement())
      await other.sync()
      await one.remove(id)
      const database = await openGatewayMongodb({ url })
      opened.push(database)
      const marks = { agent_id: 'gateway', slug: { $exists: false } }
      expect((await database.collection('registry_agents').deleteMany(marks)).deletedCount).toBe(1)
      await other.sync()
      expect(other.find(id)).toBeDefined()
      await other.sync(true)
      expect([other.find(id), other.find(stays.id)?.id]).toEqual([undefined, stays.id])
    })

    test('a change to an entry that other gateways keep changing is refused with 503 and not an internal error', async () => {
      const store = await open()
      const { id } = await (await Registry.open(store)).register(announcement())
      const busy = await Registry.open({ ...store, replace: () => Promise.reject(new EntryChanged('again')) })
      await expect(busy.admit(id, 'operator')).rejects.toMatchObject({ error: 'Unavailable', status: 503 })
    })

    test('a heartbeat finds an agent that has just registered with the other gateway', async () => {
      const [one, other] = await registries(2)
      const agent = announcement()
      const replicaId = randomUUID()
      const { id } = await one.register({ ...agent, replicaId })
      expect(other.find(id)).toBeUndefined()
      expect((await other.findOrSync(id, replicaId))?.replicas).toHaveLength(1)
      expect(await other.findOrSync('nobody')).toBeUndefined()
    })

    test('concurrent decisions at several gateways are all kept', async () => {
      const made = await registries(3)
      const { id } = await made[0].register(announcement({ admitted: false }))
      for (const registry of made) await registry.sync()
      await Promise.all([
        made[0].admit(id, 'operator'),
        made[1].quarantine(id, 'operator', 'bad'),
        made[2]?.register({ ...announcement({ did: undefined as never }), name: 'other' }),
      ])
      for (const registry of made) {
        await registry.sync()
        expect(registry.find(id)).toMatchObject({ admitted: true, quarantine: { reason: 'bad' } })
        expect(registry.find('other')).toBeDefined()
      }
    })

    test('only one of several concurrent registrations with the same slug at several gateways succeeds', async () => {
      const made = await registries(4)
      const results = await all(12, (n) => (made[n % 4] as Registry).register(announcement({ name: 'same' })))
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      const reasons = results.flatMap((one) => (one.status === 'rejected' ? [one.reason as object] : []))
      // DocumentDB takes a second to detect a deadlock of two writes, so the request may time out first.
      const isLate = (reason: { code?: number }) =>
        server.kind === 'FerretDB with DocumentDB' && reason.code === -32042
      const again = () => made[0].register(announcement({ name: 'same' })).catch((error: unknown) => error)
      // The refused registrations receive this answer when they are retried.
      const told = await Promise.all(reasons.map(async (reason) => (isLate(reason) ? again() : reason)))
      const taken = { code: -32043, data: { reason: 'slug', slug: 'same' } }
      for (const reason of told) expect(reason).toMatchObject(taken)
    })

    test('a heartbeat at one gateway keeps the agent ready at the others without reverting their decisions', async () => {
      const [one, other] = await registries(2)
      const { id } = await one.register(announcement())
      await other.sync()
      await other.quarantine(id, 'operator', 'bad')
      clock += 50_000
      one.heartbeat(id, { queueDepth: 4 })
      await one.sync()
      clock += 40_000
      await other.sync()
      expect(other.expireLeases()).toEqual([])
      expect(other.find(id)).toMatchObject({ load: { queueDepth: 4 }, quarantine: { reason: 'bad' } })
      expect(one.find(id)?.quarantine).toMatchObject({ reason: 'bad' })
    })

    test('an expired lease does not override a heartbeat received by another gateway', async () => {
      const [one, other] = await registries(2)
      const { id } = await one.register(announcement())
      await other.sync()
      clock += 100_000
      one.heartbeat(id, {})
      await one.flush()
      expect(other.expireLeases()).toHaveLength(1)
      await other.sync()
      await one.sync()
      expect([one.find(id)?.status, other.find(id)?.status]).toEqual(['ready', 'ready'])
    })

    test('replicas that send heartbeats to different gateways form one agent that is ready while any of them is', async () => {
      const [one, other] = await registries(2)
      const agent = announcement()
      const [a, b] = [randomUUID(), randomUUID()]
      const { id } = await one.register({ ...agent, replicaId: a, url: 'http://127.0.0.1:1' })
      await other.register({ ...agent, replicaId: b, url: 'http://127.0.0.1:2' })
      await one.sync()
      one.heartbeat(id, { activeTasks: 2, queueDepth: 5 }, a)
      other.heartbeat(id, { activeTasks: 3, queueDepth: 5 }, b)
      for (const registry of [one, other, one]) await registry.sync()
      for (const registry of [one, other]) {
        expect(registry.find(id)?.replicas?.map(({ url: at }) => at)).toEqual([
          'http://127.0.0.1:1',
          'http://127.0.0.1:2',
        ])
        expect(registry.find(id)?.load).toEqual({ activeTasks: 5, queueDepth: 5 })
      }
      clock += 85_000
      other.heartbeat(id, {}, b)
      clock += 10_000
      await other.sync()
      other.expireLeases()
      await other.sync()
      await one.sync()
      expect(one.find(id)).toMatchObject({ status: 'ready', url: 'http://127.0.0.1:2' })
      expect(one.find(id)?.replicas).toHaveLength(1)
      expect(() => one.heartbeat(id, {}, a)).toThrow(expect.objectContaining({ data: { reason: 'replica' } }))
      await one.leaveReplica(id, b)
      await other.sync()
      expect(other.find(id)).toBeUndefined()
    })

    test('a starting gateway does not mark other gateways’ agents as stopped', async () => {
      const [one] = await registries(1)
      const { id } = await one.register(announcement({ origin: 'supervised', admittedBy: 'supervisor' }))
      const second = await Registry.open(await open(), { now: () => clock, supervises: false })
      expect(second.find(id)?.status).toBe('ready')
      const again = await Registry.open(await open(), { now: () => clock })
      expect(again.find(id)?.status).toBe('unreachable')
    })
  })
})
