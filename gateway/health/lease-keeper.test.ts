import { mkdtemp, rm } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { makeLog, markStopping } from '@parley/kit/process/log'
import { ParleyError } from '@parley/wire/errors'
import { Agent } from 'undici'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Registry } from '../registry/registry.ts'
import { SqliteRegistryStore } from '../registry/store/sqlite/registry.ts'
import { gatewayMigrations } from '../store/sqlite/schema.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { probeAgent, readJson } from './probe.ts'

let folder: string
let stack: AsyncDisposableStack
const never = new AbortController().signal

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-leases-'))
  stack = new AsyncDisposableStack()
})

afterEach(async () => {
  await stack.disposeAsync()
  await rm(folder, { recursive: true, force: true })
})

async function serve(listener: http.RequestListener): Promise<string> {
  const server = http.createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  stack.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function dispatcher(): Agent {
  return stack.adopt(new Agent(), (agent) => agent.destroy())
}

/** Returns a registry with one agent at `url`, its lease keeper, and the clock that both use. */
async function keeperOf(url: string, origin: 'registered' | 'supervised' = 'registered', admitted = true) {
  let clock = 1_000_000
  const now = () => clock
  const database = stack.use(await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations))
  const registry = await Registry.open(new SqliteRegistryStore(database), { now })
  const entry = await registry.register({
    name: 'external',
    description: '',
    url,
    card: {},
    skills: [],
    owner: 'someone',
    origin,
    verified: false,
    admitted,
  })
  const agent = dispatcher()
  const log = makeLog({ level: 'silent', name: 'test' })
  const probe = (one: { url: string }, signal: AbortSignal) => probeAgent(one, signal, { dispatcher: agent })
  const keeper = stack.use(new LeaseKeeper({ registry, log, probe, now }))
  const passLease = async (leases = 1) => {
    clock += leases * registry.leaseMs
    await keeper.round()
    await keeper.probed()
  }
  const pass = (leases: number) => {
    clock += leases * registry.leaseMs
  }
  return { registry, keeper, id: entry.id, passLease, pass }
}

test('an agent that never sent a heartbeat is probed once per lease and stays ready while it responds', async () => {
  let probed = 0
  const url = await serve((_request, response) => {
    probed++
    response.end('{}')
  })
  const { registry, keeper, id, passLease } = await keeperOf(url)
  for (let lease = 0; lease < 5; lease++) await passLease()
  await keeper.round()
  await keeper.probed()
  expect(probed).toBe(5)
  expect(registry.find(id)).toMatchObject({ status: 'ready', sendsHeartbeats: false })
})

test('an agent that stops responding becomes unreachable after three leases and ready again when it responds', async () => {
  let up = true
  const url = await serve((_request, response) => {
    response.statusCode = up ? 200 : 503
    response.end('{}')
  })
  const { registry, id, passLease } = await keeperOf(url)
  await passLease()
  up = false
  await passLease()
  await passLease()
  expect(registry.find(id)?.status).toBe('ready')
  await passLease()
  expect(registry.find(id)?.status).toBe('unreachable')
  up = true
  await passLease()
  expect(registry.find(id)?.status).toBe('ready')
})

test('rounds do not wait for slow agents', async () => {
  const answers: http.ServerResponse[] = []
  const { promise: probed, resolve } = Promise.withResolvers<void>()
  const url = await serve((_request, response) => {
    answers.push(response)
    resolve()
  })
  const { registry, keeper, id, pass } = await keeperOf(url)
  pass(1)
  await keeper.round()
  await probed
  pass(2)
  await keeper.round()
  expect(registry.find(id)?.status).toBe('unreachable')
  for (const answer of answers) answer.end('{}')
})

test('an agent that has been unreachable for a long time is probed rarely', async () => {
  let probed = 0
  const url = await serve((_request, response) => {
    probed++
    response.writeHead(503).end()
  })
  const { passLease } = await keeperOf(url)
  for (let lease = 0; lease < 10; lease++) await passLease()
  expect(probed).toBe(10)
  for (let lease = 0; lease < 30; lease++) await passLease()
  expect(probed).toBe(13)
})

test('a pending agent is probed once it is admitted', async () => {
  let probed = 0
  const url = await serve((_request, response) => {
    probed++
    response.end('{}')
  })
  const { registry, id, passLease } = await keeperOf(url, 'registered', false)
  await passLease(4)
  expect([probed, registry.find(id)?.status]).toEqual([0, 'unreachable'])
  await registry.admit(id, 'operator')
  await passLease()
  expect([probed, registry.find(id)?.status]).toEqual([1, 'ready'])
})

test('an agent that sends heartbeats is not probed', async () => {
  let probed = 0
  const url = await serve((_request, response) => {
    probed++
    response.end('{}')
  })
  const { registry, id, passLease } = await keeperOf(url)
  registry.heartbeat(id, {})
  await passLease(3)
  expect(probed).toBe(0)
  expect(registry.find(id)?.status).toBe('unreachable')
})

test('a supervised agent without a process is not confused with another server at its old address', async () => {
  const url = await serve((_request, response) => response.end('{}'))
  const { registry, id, passLease } = await keeperOf(url, 'supervised')
  registry.setStatus(id, 'unreachable')
  await passLease()
  expect(registry.find(id)?.status).toBe('unreachable')
})

/** Returns a keeper of many responding agents, with a lease so long that the timer starts no rounds. */
async function keeperOfMany(agents: number, options: { everyMs?: number } = {}) {
  const database = stack.use(await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations))
  const registry = await Registry.open(new SqliteRegistryStore(database), { leaseMs: 1_000_000_000 })
  const facts = { description: '', card: {}, skills: [], owner: 'someone', verified: false, admitted: true }
  const names = Array.from({ length: agents }, (_, number) => `agent-${number}`)
  await Promise.all(
    names.map((name) =>
      registry.register({ ...facts, name, url: `http://${name}.test`, origin: 'registered' }),
    ),
  )
  const probed: string[] = []
  const probe = async ({ slug }: { slug: string }) => {
    probed.push(slug)
    return true
  }
  const log = makeLog({ level: 'silent', name: 'test' })
  return { keeper: stack.use(new LeaseKeeper({ registry, log, probe, ...options })), probed, names }
}

test('with many agents, each round probes a fraction of them and every agent is probed within one lease', async () => {
  const { keeper, probed, names } = await keeperOfMany(100)
  const counts: number[] = []
  for (let round = 0; round < 3; round++) {
    await keeper.round()
    await keeper.probed()
    counts.push(probed.length)
  }
  expect(counts).toEqual([64, 100, 100])
  expect(probed.toSorted()).toEqual(names.toSorted())
})

test('pending probes do not delay disposal', async () => {
  const { keeper, probed } = await keeperOfMany(65, { everyMs: 1_000_000_000 })
  await keeper.round()
  await expect.poll(() => probed.length).toBe(16)
  await keeper[Symbol.asyncDispose]()
  expect(probed).toHaveLength(16)
})

test('the keeper is no longer alive when its rounds stop', async () => {
  const { keeper, registry, passLease } = await keeperOf('http://127.0.0.1:1')
  await passLease()
  expect(keeper.alive).toBe(true)
  expect(registry.all()).toHaveLength(1)
})

test.each<[string, http.RequestListener, boolean]>([
  ['200 of /health', (_request, response) => response.end(), true],
  ['503 of /health', (_request, response) => response.writeHead(503).end(), false],
  [
    'no /health but a card',
    (request, response) => {
      if (request.url === '/health') response.writeHead(404).end()
      else response.end('{"name":"x"}')
    },
    true,
  ],
  [
    'no /health and an invalid card',
    (request, response) => {
      if (request.url === '/health') response.writeHead(404).end()
      else response.end('[]')
    },
    false,
  ],
  ['a redirect', (_request, response) => response.writeHead(302, { location: '/elsewhere' }).end(), false],
  [
    'an endless response',
    (_request, response) => {
      const more = () => response.write('x'.repeat(65_536), () => response.destroyed || more())
      more()
    },
    false,
  ],
  ['no response', () => undefined, false],
])('a probe that receives %s reports whether the agent is reachable', async (_what, listener, there) => {
  const url = await serve(listener)
  const timeoutMs = there ? 40_000 : 500
  const options = { dispatcher: dispatcher(), timeoutMs, answerMaxBytes: 100_000 }
  expect(await probeAgent({ url }, never, options)).toBe(there)
})

test.each<[string, string]>([
  ['no JSON', 'hello'],
  ['no object', '[1]'],
  ['an oversized body', `{"a":"${'x'.repeat(1000)}"}`],
])('reading JSON from an agent that sends %s is rejected', async (_what, body) => {
  const url = await serve((_request, response) => response.end(body))
  await expect(readJson(url, never, { dispatcher: dispatcher(), answerMaxBytes: 500 })).rejects.toThrow(url)
})

test.each<[string, () => Promise<void>]>([
  ['refuses', () => Promise.reject(new ParleyError('Unavailable'))],
  ['does not respond', () => new Promise(() => {})],
])('disposal finishes on time with one log line when the storage %s', async (_how, saveSigns) => {
  const database = stack.use(await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations))
  const store = new SqliteRegistryStore(database)
  const registry = await Registry.open(store)
  const announcement = {
    description: '',
    url: 'http://127.0.0.1:1',
    card: {},
    skills: [],
    owner: 'someone',
  }
  const origin = { origin: 'registered', verified: false, admitted: true } as const
  const { id } = await registry.register({ name: 'external', ...announcement, ...origin })
  const lines: Record<string, unknown>[] = []
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) }
  const log = makeLog({ level: 'info', name: 'test', destination })
  markStopping(log)
  const keeper = new LeaseKeeper({ registry, log, probe: async () => true })
  store.saveSigns = saveSigns
  registry.heartbeat(id, { queueDepth: 1 })
  await keeper[Symbol.asyncDispose]()
  const msg = 'the final lease data of agents could not be written'
  expect(lines).toMatchObject([{ level: 40, reason: expect.any(String), msg }])
})
