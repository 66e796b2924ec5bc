import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
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

/** Counts the records that are read. */
function withCount(store: OAuthStore) {
  const reads = { count: 0 }
  const find: OAuthStore['find'] = (model, id) => {
    reads.count += 1
    return store.find(model, id)
  }
  return { reads, store: { ...store, find } }
}

/** Waits until the gateway introspects the token of a caller without a read. */
async function warmAt({ provider }: TestIdentityProvider, reads: { count: number }, token: string) {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    const before = reads.count
    expect(await provider.introspect(token)).toMatchObject({ active: true })
    if (reads.count === before) return
    await wait(20)
  }
  throw new Error('the response is not cached')
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

interface ProcessAnswer {
  isActive: boolean
  /** The number of records that the process has read so far. */
  reads: number
}

/** A process with the OAuth server of a gateway on MongoDB. It introspects the tokens that it receives. */
class GatewayProcess implements AsyncDisposable {
  readonly process: ChildProcess

  private constructor(child: ChildProcess) {
    this.process = child
  }

  static async start(dir: string, url: string): Promise<GatewayProcess> {
    const from = (file: string) => JSON.stringify(pathToFileURL(path.resolve('gateway', file)).href)
    const script = `
      const { openGatewayMongodb } = await import(${from('store/mongodb/database.ts')})
      const { encryptedStore, startIdentityProvider } = await import(${from('oauth/testing.ts')})
      const { leaseRecords } = await import(${from('oauth/leases/lease-records.ts')})
      const { documents } = await openGatewayMongodb({ url: ${JSON.stringify(url)} })
      const store = await encryptedStore(documents)
      let reads = 0
      const find = (...record) => { reads += 1; return store.find(...record) }
      const shared = { store: { ...store, find }, leaseRecords: leaseRecords(documents) }
      const issuer = 'http://gateways.example/oauth2'
      const { provider } = await startIdentityProvider({ dir: ${JSON.stringify(dir)}, issuer, shared })
      process.on('message', async (token) =>
        process.send({ isActive: (await provider.introspect(token)).active, reads }))
      process.send('ready')`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    await once(child, 'message')
    return new GatewayProcess(child)
  }

  async introspect(token: string): Promise<ProcessAnswer> {
    const answered = once(this.process, 'message')
    this.process.send(token)
    return ((await answered) as [ProcessAnswer])[0]
  }

  async warm(token: string): Promise<void> {
    let reads = -1
    for (let attempt = 0; attempt < 300; attempt += 1) {
      const answer = await this.introspect(token)
      if (!answer.isActive) throw new Error('the token is not active')
      if (answer.reads === reads) return
      reads = answer.reads
      await wait(20)
    }
    throw new Error('the response is not cached')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const left = once(this.process, 'exit')
    this.process.kill('SIGKILL')
    await left
  }
}

function cases(name: string, openShared: () => Promise<Shared>): void {
  async function start() {
    const { dir } = open.use(await temporaryFolder())
    const { store, leaseRecords: records } = await openShared()
    const [cuttable, issuer] = [withCuts(records), 'http://gateways.example/oauth2']
    const counted = withCount(store)
    const first = open.use(
      await startIdentityProvider({
        dir,
        issuer,
        shared: { store: counted.store, leaseRecords: cuttable.records },
      }),
    )
    const second = open.use(
      await startIdentityProvider({ dir, issuer, shared: { store, leaseRecords: records } }),
    )
    const client = { clientId: 'alice', clientName: 'alice', scope: 'agent:read' }
    const alice = await first.provider.ensureClient(client)
    return { first, second, cuts: cuttable.cuts, reads: counted.reads, alice }
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

    test('a gateway caches the introspection of its callers until a revocation at either gateway', async () => {
      const { first, second, reads, alice } = await start()
      for (let round = 0; round < 6; round += 1) {
        const token = await first.token(alice)
        await warmAt(first, reads, token)
        const tookMs = await revoke(round % 2 === 0 ? second : first, token, alice)
        expect((await first.provider.introspect(token)).active).toBe(false)
        expect(tookMs).toBeLessThan(3000)
      }
    })

    test('a limit of a client that is set at one gateway applies to the next request at the other one', async () => {
      const { first, second, reads, alice } = await start()
      const token = await first.token(alice)
      await warmAt(first, reads, token)
      await second.provider.clients.limit('alice', { requestsPerMinute: 7 })
      expect(await first.provider.introspect(token)).toMatchObject({ requests_per_minute: 7 })
    })

    test('a gateway that is cut off from the log does not use a cached response after the revocation', async () => {
      const { first, second, cuts, reads, alice } = await start()
      const token = await first.token(alice)
      await warmAt(first, reads, token)
      cuts.isCut = true
      const tookMs = await revoke(second, token, alice)
      expect((await first.provider.introspect(token)).active).toBe(false)
      expect(tookMs).toBeGreaterThan(1000)
      expect(tookMs).toBeLessThan(5000)
    })

    test('a gateway without callers gives its lease back when it stops', async () => {
      const { first, second, reads, alice } = await start()
      const [token, other] = [await first.token(alice), await first.token(alice)]
      await warmAt(first, reads, token)
      await first.provider[Symbol.asyncDispose]()
      expect(await revoke(second, other, alice)).toBeLessThan(1000)
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

  test('a gateway that was paused during a revocation refuses the token in the next request', async () => {
    const { dir } = open.use(await temporaryFolder())
    const url = server.newUrl()
    const database = open.use(await openGatewayMongodb({ url }))
    const shared = {
      store: await encryptedStore(database.documents),
      leaseRecords: leaseRecords(database.documents),
    }
    const issuer = 'http://gateways.example/oauth2'
    const running = open.use(await startIdentityProvider({ dir, issuer, shared }))
    const alice = await running.provider.ensureClient({
      clientId: 'alice',
      clientName: 'alice',
      scope: 'agent:read',
    })
    const paused = open.use(await GatewayProcess.start(dir, url))
    for (const pauseMs of [0, 1200]) {
      const token = await running.token(alice)
      await paused.warm(token)
      paused.process.kill('SIGSTOP')
      await wait(pauseMs)
      const tookMs = await revoke(running, token, alice)
      const answer = paused.introspect(token)
      paused.process.kill('SIGCONT')
      expect((await answer).isActive).toBe(false)
      expect(tookMs).toBeLessThan(5000)
    }
  })

  cases('MongoDB', async () => {
    const database = open.use(await openGatewayMongodb({ url: server.newUrl() }))
    return {
      store: database.guard(await encryptedStore(database.documents)),
      leaseRecords: database.guard(leaseRecords(database.documents)),
    }
  })
})
