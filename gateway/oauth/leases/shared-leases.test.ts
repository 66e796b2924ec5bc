import { setTimeout as wait } from 'node:timers/promises'
import { HttpIntrospector } from '@parley/kit/auth/introspection'
import { LeasedIntrospector } from '@parley/kit/auth/leased-introspection'
import { memoryDocuments } from '@parley/kit/database/memory/documents'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openGatewayMongodb } from '../../store/mongodb/database.ts'
import type { OAuthStore } from '../oauth-store.ts'
import {
  encryptedStore,
  startIdentityProvider,
  type TestIdentityProvider,
  temporaryFolder,
} from '../testing.ts'
import { type LeaseRecords, leaseRecords } from './lease-records.ts'

interface Shared {
  store: OAuthStore
  leaseRecords: LeaseRecords
}

let open: AsyncDisposableStack
beforeEach(() => {
  open = new AsyncDisposableStack()
})
afterEach(() => open.disposeAsync())

/** Never responds while `isCut`. */
function withCuts(records: LeaseRecords) {
  const cuts = { isCut: false }
  const entries = Object.entries(records).map(([name, method]) => [
    name,
    async (...args: unknown[]) => {
      if (cuts.isCut) await new Promise(() => {})
      return (method as (...given: unknown[]) => unknown)(...args)
    },
  ])
  return { cuts, records: Object.fromEntries(entries) as LeaseRecords }
}

/** An agent that reaches the gateways in turn, as behind a balancer, or only one. */
async function agent(clientId: string, gateways: readonly TestIdentityProvider[]) {
  const [first] = gateways
  if (first === undefined) throw new Error('there is no gateway')
  const client = { clientId, clientName: clientId, scope: 'agent:read', introspection: true }
  const credentials = await first.provider.ensureClient(client)
  const https = gateways.map(
    ({ origin }) => new HttpIntrospector({ url: `${origin}/oauth2/introspect`, ...credentials }),
  )
  let turn = 0
  const next = () => https[(turn += 1) % https.length] ?? https[0]!
  const introspector = open.use(
    new LeasedIntrospector({
      http: {
        request: (token) => next().request(token),
        post: (request) => next().post(request),
        ping: () => next().ping(),
        [Symbol.asyncDispose]: async () => {
          for (const http of https) await http[Symbol.asyncDispose]()
        },
      },
    }),
  )
  const warm = async (token: string) => {
    for (let attempt = 0; attempt < 300; attempt += 1) {
      const answer = await introspector.introspect(token)
      if ((await introspector.introspect(token)) === answer) return
      await wait(20)
    }
    throw new Error('the response is not cached')
  }
  return { warm, isActive: async (token: string) => (await introspector.introspect(token)).active }
}

async function revoke(gateway: TestIdentityProvider, token: string, as: Credentials): Promise<number> {
  const from = performance.now()
  expect((await gateway.post('/oauth2/revoke', { token }, as)).status).toBe(200)
  return performance.now() - from
}
type Credentials = Awaited<ReturnType<TestIdentityProvider['provider']['ensureClient']>>

function cases(name: string, openShared: () => Promise<Shared>): void {
  async function start() {
    const { dir } = open.use(await temporaryFolder())
    const { store, leaseRecords: records } = await openShared()
    const [cuttable, issuer] = [withCuts(records), 'http://gateways.example/oauth2']
    const first = open.use(
      await startIdentityProvider({ dir, issuer, shared: { store, leaseRecords: cuttable.records } }),
    )
    const second = open.use(
      await startIdentityProvider({ dir, issuer, shared: { store, leaseRecords: records } }),
    )
    const client = { clientId: 'alice', clientName: 'alice', scope: 'agent:read' }
    return { first, second, cuts: cuttable.cuts, alice: await first.provider.ensureClient(client) }
  }

  describe(`two gateways (${name})`, () => {
    test('a revocation at one gateway is seen by the next request at an agent of the other one', async () => {
      const { first, second, alice } = await start()
      const [near, far] = [await agent('agent-1', [first]), await agent('agent-2', [second])]
      for (let round = 0; round < 5; round += 1) {
        const token = await first.token(alice)
        await Promise.all([near.warm(token), far.warm(token)])
        const tookMs = await revoke(round % 2 === 0 ? first : second, token, alice)
        expect([await near.isActive(token), await far.isActive(token)]).toEqual([false, false])
        expect(tookMs).toBeLessThan(3000)
      }
    })

    test('an agent behind a balancer keeps its responses, and a revocation is seen at once', async () => {
      const { first, second, alice } = await start()
      const balanced = await agent('agent-1', [first, second])
      for (let round = 0; round < 3; round += 1) {
        const token = await first.token(alice)
        await balanced.warm(token)
        await revoke(second, token, alice)
        expect(await balanced.isActive(token)).toBe(false)
      }
    })

    test('a gateway that is cut off from the database grants no leases after the revocation has returned', async () => {
      const { first, second, cuts, alice } = await start()
      const near = await agent('agent-1', [first])
      const token = await first.token(alice)
      await near.warm(token)
      cuts.isCut = true
      const tookMs = await revoke(second, token, alice)
      expect(await near.isActive(token)).toBe(false)
      expect(tookMs).toBeGreaterThan(1000)
      expect(tookMs).toBeLessThan(5000)
    })

    test('a repeated revocation waits for the holders too', async () => {
      const { first, second, cuts, alice } = await start()
      const near = await agent('agent-1', [first])
      const token = await first.token(alice)
      await near.warm(token)
      cuts.isCut = true
      const [one, other] = [revoke(second, token, alice), wait(30).then(() => revoke(second, token, alice))]
      await Promise.race([one, other])
      expect(await near.isActive(token)).toBe(false)
      await Promise.all([one, other])
    })
  })
}

cases('memory', async () => {
  const documents = memoryDocuments()
  return { store: await encryptedStore(documents), leaseRecords: leaseRecords(documents) }
})

describe.skipIf(!hasMongodb)('on a MongoDB-compatible server (needs mongod)', () => {
  let server: MongodbServer
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  cases('MongoDB', async () => {
    const database = open.use(await openGatewayMongodb({ url: server.newUrl() }))
    return {
      store: database.guard(await encryptedStore(database.documents)),
      leaseRecords: database.guard(leaseRecords(database.documents)),
    }
  })
})
