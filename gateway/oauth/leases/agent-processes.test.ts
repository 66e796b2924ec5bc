import { setTimeout as wait } from 'node:timers/promises'
import { type FaultyProxy, startFaultyProxy } from '@parley/tools/testing/faulty-proxy'
import { KillableAgent } from '@parley/tools/testing/killable-agent'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startIdentityProvider, type TestIdentityProvider, temporaryFolder } from '../testing.ts'

/** Two processes of an agent, each of which reaches the OAuth server through a proxy. */

const source = `export default {
  name: 'echo', description: 'Echoes', skills: [{ id: 'echo', name: 'Echo', description: 'Echoes' }],
  handle: ({ text }) => text,
}`

interface Agent {
  process: KillableAgent
  proxy: FaultyProxy
}

const open = new AsyncDisposableStack()
let folder: string
let server: TestIdentityProvider
let agents: [Agent, Agent]
let alice: { clientId: string; clientSecret: string }

async function startAgent(port: string): Promise<Agent> {
  const client = { clientId: 'agent', clientName: 'Agent', scope: 'agent:read', introspection: true }
  const { clientId, clientSecret } = await server.provider.ensureClient(client)
  const proxy = open.use(await startFaultyProxy(`http://127.0.0.1:${port}/oauth2/introspect`))
  const env = {
    OAUTH_INTROSPECTION_URL: proxy.url,
    OAUTH_CLIENT_ID: clientId,
    OAUTH_CLIENT_SECRET: clientSecret,
    RATE_LIMIT_PER_MINUTE: '0',
  }
  return { process: open.use(await KillableAgent.start(source, env)), proxy }
}

beforeAll(async () => {
  folder = open.use(await temporaryFolder()).dir
  server = await startIdentityProvider({ dir: folder })
  open.defer(() => server[Symbol.asyncDispose]())
  const { port } = new URL(server.origin)
  agents = await Promise.all([startAgent(port), startAgent(port)])
}, 120_000)
afterAll(() => open.disposeAsync())
beforeEach(async () => {
  alice = await server.provider.ensureClient({ clientId: 'alice', clientName: 'Alice', scope: 'agent:read' })
})

/** Returns 200 if the agent accepts the token. */
async function statusAt({ process }: Agent, token: string): Promise<number> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/list', params: {} })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return (await fetch(process.url, { method: 'POST', headers, body })).status
}

/** Waits until the agent answers requests without an introspection. */
async function warm(agent: Agent, token: string): Promise<void> {
  for (let attempt = 0; attempt < 1000; attempt += 1) {
    const before = agent.proxy.requests
    for (let request = 0; request < 5; request += 1) expect(await statusAt(agent, token)).toBe(200)
    // A poll may be among the requests.
    if (agent.proxy.requests - before < 3) return
    await wait(20)
  }
  throw new Error('the agent does not cache the response')
}

async function revoke(token: string): Promise<number> {
  const from = performance.now()
  expect((await server.post('/oauth2/revoke', { token }, alice)).status).toBe(200)
  return performance.now() - from
}

test('a revoked token is refused by the next request at two processes with warm caches', async () => {
  for (let round = 0; round < 5; round += 1) {
    const token = await server.token(alice)
    await Promise.all(agents.map((agent) => warm(agent, token)))
    await revoke(token)
    expect(await Promise.all(agents.map((agent) => statusAt(agent, token)))).toEqual([401, 401])
  }
})

test('many revocations at the same time are settled together', async () => {
  const tokens = await Promise.all(Array.from({ length: 40 }, () => server.token(alice)))
  for (const token of tokens.slice(0, 10)) for (const agent of agents) await statusAt(agent, token)
  const durations = await Promise.all(tokens.map(revoke))
  expect(Math.max(...durations)).toBeLessThan(2500)
  for (const agent of agents)
    expect(await Promise.all(tokens.map((token) => statusAt(agent, token)))).toEqual(tokens.map(() => 401))
})

test('a process that was stopped during the revocation refuses the token when it continues', async () => {
  const [first, second] = agents
  const token = await server.token(alice)
  await Promise.all(agents.map((agent) => warm(agent, token)))
  first.process.freeze()
  const sentWhileStopped = statusAt(first, token)
  const tookMs = await revoke(token)
  expect(await statusAt(second, token)).toBe(401)
  first.process.thaw()
  expect(await statusAt(first, token)).toBe(401)
  expect(tookMs).toBeLessThan(2500)
  // This request began before the revocation.
  expect([200, 401]).toContain(await sentWhileStopped)
})

test('a partitioned process refuses requests with 503, and refuses the token after the partition', async () => {
  const [first] = agents
  const token = await server.token(alice)
  await warm(first, token)
  first.proxy.fault = 'silence'
  await revoke(token)
  expect([401, 503]).toContain(await statusAt(first, token))
  first.proxy.fault = 'none'
  await expect.poll(() => statusAt(first, token), { timeout: 20_000 }).toBe(401)
}, 40_000)

test('a killed process delays a revocation by two seconds at most', async () => {
  const [first] = agents
  const token = await server.token(alice)
  await warm(first, token)
  await first.process.kill()
  expect(await revoke(token)).toBeLessThan(2500)
  await first.process.start()
  expect(await statusAt(first, token)).toBe(401)
}, 60_000)

test('a gateway that is restarted waits for the leases of the earlier process', async () => {
  const [first] = agents
  const [token, other] = [await server.token(alice), await server.token(alice)]
  await warm(first, token)
  const { port } = new URL(server.origin)
  const stopped = server
  const starting = stopped[Symbol.asyncDispose]().then(() =>
    startIdentityProvider({ dir: folder, port: Number(port) }),
  )
  server = await starting
  await revoke(token)
  expect([401, 503]).toContain(await statusAt(first, token))
  await expect.poll(() => statusAt(first, token), { timeout: 20_000 }).toBe(401)
  await expect.poll(() => statusAt(first, other), { timeout: 20_000 }).toBe(200)
  await warm(first, other)
}, 60_000)
