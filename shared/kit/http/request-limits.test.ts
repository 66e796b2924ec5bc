import type { RateLimitPluginOptions } from '@fastify/rate-limit'
import { type TestAgent, testAgent } from '@parley/agent/testing'
import { raw, rpc } from '@parley/tools/testing/raw-http'
import { afterEach, expect, test } from 'vitest'
import { makeLog } from '../process/log.ts'
import { createMetrics } from '../process/metrics.ts'
import { RequestLimits, requestLimits } from './request-limits.ts'
import { createServer, type ServerOptions } from './server.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()?.[Symbol.asyncDispose]()
})

async function limitedAgent(perMinute: number, env: Record<string, string> = {}): Promise<TestAgent> {
  const agent = await testAgent(
    { handle: ({ text }) => text },
    { env: { RATE_LIMIT_PER_MINUTE: String(perMinute), ...env } },
  )
  open.push(agent)
  return agent
}

/** A server with one public route. */
async function limitedServer(limits: RequestLimits | undefined, options: Partial<ServerOptions> = {}) {
  const log = makeLog({ level: 'silent', name: 'test' })
  const app = createServer({ log, metrics: createMetrics(), limits, ...options })
  app.get('/open', async () => 'open')
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  open.push({ [Symbol.asyncDispose]: () => app.close() })
  return { url }
}

const get = async (server: { url: string }, headers: Record<string, string> = {}) =>
  (await raw(server, { path: '/open', method: 'GET', headers })).status

const statuses = async (count: number, send: (number: number) => Promise<{ status: number } | number>) => {
  const codes: number[] = []
  for (let number = 0; number < count; number += 1) {
    const answer = await send(number)
    codes.push(typeof answer === 'number' ? answer : answer.status)
  }
  return codes
}

test('a client above its individual limit receives 429, whichever token it sends', async () => {
  const agent = await limitedAgent(100)
  const limited = { requests_per_minute: 2 }
  const [one, two] = [1, 2].map(() => agent.identityProvider.issue('alice', limited))
  const list = (token = '') => rpc(agent, 'tasks/list', {}, { token })
  expect(await statuses(4, (number) => list(number % 2 === 0 ? one : two))).toEqual([200, 200, 429, 429])
  const bob = agent.caller('bob').token
  expect(await statuses(4, () => list(bob))).toEqual([200, 200, 200, 200])
})

test('a client’s individual limit does not exceed that of the server', async () => {
  const agent = await limitedAgent(2)
  const token = agent.identityProvider.issue('alice', { requests_per_minute: 50 })
  const list = () => rpc(agent, 'tasks/list', {}, { token })
  expect(await statuses(3, list)).toEqual([200, 200, 429])
})

test('a caller over the limit receives 429 with Retry-After and -32041, and other callers are not affected', async () => {
  const agent = await limitedAgent(3)
  const [alice, bob] = [agent.caller('alice').token, agent.caller('bob').token]
  const list = (token: string) => rpc(agent, 'tasks/list', {}, { token })
  expect(await statuses(3, () => list(alice))).toEqual([200, 200, 200])
  const refused = await list(alice)
  expect([refused.status, refused.json]).toEqual([
    429,
    {
      jsonrpc: '2.0',
      id: null,
      error: { code: -32041, message: 'Too many requests', data: { reason: 'caller' } },
    },
  ])
  const seconds = Number(refused.headers.get('retry-after'))
  expect(seconds).toBeGreaterThanOrEqual(1)
  expect(seconds).toBeLessThanOrEqual(60)
  expect((await list(bob)).status).toBe(200)
})

test('all tokens of a client share a count', async () => {
  const agent = await limitedAgent(4)
  const tokens = ['1', '2'].map(() => agent.caller('alice').token)
  const codes = await statuses(6, (number) => rpc(agent, 'tasks/list', {}, { token: tokens[number % 2] }))
  expect(codes).toEqual([200, 200, 200, 200, 429, 429])
})

test('a caller over the limit is rejected without an introspection request', async () => {
  const agent = await limitedAgent(2)
  const { token } = agent.caller('alice')
  await statuses(3, () => rpc(agent, 'tasks/list', {}, { token }))
  const introspections = agent.identityProvider.introspections
  expect(await statuses(5, () => rpc(agent, 'tasks/list', {}, { token }))).toEqual(Array(5).fill(429))
  expect(agent.identityProvider.introspections).toBe(introspections)
})

test('requests to public routes count for the client of a validated token', async () => {
  const agent = await limitedAgent(3)
  const { token } = agent.caller('alice')
  expect((await rpc(agent, 'tasks/list', {}, { token })).status).toBe(200)
  const skills = () => raw(agent, { path: '/agent/skills', method: 'GET', token })
  expect(await statuses(3, skills)).toEqual([200, 200, 429])
})

test('invalid tokens count for their address and are not introspected beyond the limit', async () => {
  const agent = await limitedAgent(5)
  const { token } = agent.caller('alice')
  expect((await rpc(agent, 'tasks/list', {}, { token })).status).toBe(200)
  const introspections = agent.identityProvider.introspections
  const flood = await Promise.all(
    Array.from({ length: 40 }, (_, number) => rpc(agent, 'tasks/list', {}, { token: `bad-${number}` })),
  )
  expect(flood.filter(({ status }) => status === 401)).toHaveLength(4)
  expect(flood.filter(({ status }) => status === 429)).toHaveLength(36)
  expect(agent.identityProvider.introspections - introspections).toBe(4)
  // Another client at the same address with a validated token is not affected.
  expect((await rpc(agent, 'tasks/list', {}, { token })).status).toBe(200)
})

test('a token that is no longer valid counts for its address again', async () => {
  const agent = await limitedAgent(3)
  const { token } = agent.caller('alice')
  expect((await rpc(agent, 'tasks/list', {}, { token })).status).toBe(200)
  agent.identityProvider.revoke(token)
  const codes = await statuses(4, () => rpc(agent, 'tasks/list', {}, { token }))
  expect(codes).toEqual([401, 401, 401, 429])
})

test('everything except /health and /metrics is limited', async () => {
  const agent = await limitedAgent(2)
  const at = (path: string, method = 'GET') => raw(agent, { path, method })
  for (const path of ['/health', '/metrics', '/health?a=1'])
    expect(await statuses(4, () => at(path))).toEqual([200, 200, 200, 200])
  expect(await statuses(3, () => at('/nothing'))).toEqual([404, 404, 429])
  for (const path of ['/', '/healthy', '/health/', '/.well-known/agent.json', '/agent/skills'])
    expect((await at(path)).status).toBe(429)
})

test('without a limit nothing is counted', async () => {
  expect(requestLimits({ perMinute: 0 })).toBeUndefined()
  const server = await limitedServer(undefined)
  expect(await statuses(50, () => get(server))).toEqual(Array(50).fill(200))
})

test.each([
  { 'x-forwarded-for': '203.0.113.1' },
  { 'x-forwarded-for': '127.0.0.1' },
  { 'x-forwarded-for': '203.0.113.1, 127.0.0.1' },
  { forwarded: 'for=203.0.113.1' },
  { 'x-real-ip': '203.0.113.1' },
  { 'x-client-ip': '203.0.113.1' },
  { 'cf-connecting-ip': '203.0.113.1' },
])('X-Forwarded-For of an untrusted client is ignored: %o', async (claim) => {
  const server = await limitedServer(new RequestLimits({ perMinute: 1 }))
  expect(await get(server)).toBe(200)
  expect(await get(server, claim as Record<string, string>)).toBe(429)
})

const behindProxy = (limits: RequestLimits) =>
  limitedServer(limits, { trustedProxies: ['127.0.0.0/8', '::1'] })
const from = (chain: string) => ({ 'x-forwarded-for': chain })

test('behind a trusted proxy each client has its own count', async () => {
  const server = await behindProxy(new RequestLimits({ perMinute: 1 }))
  const clients = Array.from({ length: 50 }, (_, number) => `203.0.113.${number}`)
  for (const client of clients) expect(await get(server, from(client))).toBe(200)
  for (const client of clients) expect(await get(server, from(client))).toBe(429)
})

test.each([
  ['addresses forged by the client before its own', (number: number) => `198.51.100.${number}, 203.0.113.7`],
  ['trusted proxies behind the client', () => '203.0.113.7, 127.0.0.9, 127.0.0.1'],
  ['the same IPv4 address in IPv6', (number: number) => (number % 2 ? '::ffff:203.0.113.7' : '203.0.113.7')],
  ['addresses in one IPv6 /64 network', (number: number) => `2001:db8:1:2::${number}`],
  ['a text that is not an address: it counts for the proxy', (number: number) => `client-${number}`],
  ['an overlong address', (number: number) => '9'.repeat(20_000 + number)],
  ['brackets and ports', (number: number) => `[203.0.113.${number}]:80`],
  ['an empty list', () => ', ,'],
])('behind a trusted proxy, %s are one client', async (_name, chain) => {
  const server = await behindProxy(new RequestLimits({ perMinute: 2 }))
  expect(await statuses(4, (number) => get(server, from(chain(number))))).toEqual([200, 200, 429, 429])
})

test('addresses in two IPv6 /64 networks are two clients', async () => {
  const server = await behindProxy(new RequestLimits({ perMinute: 1 }))
  expect(await get(server, from('2001:db8:1:2::1'))).toBe(200)
  expect(await get(server, from('2001:db8:1:3::1'))).toBe(200)
})

test('beyond keysMax, the least recently used keys are dropped', async () => {
  const server = await behindProxy(new RequestLimits({ perMinute: 1, keysMax: 10 }))
  expect(await statuses(2, () => get(server, from('203.0.113.1')))).toEqual([200, 429])
  await statuses(30, (number) => get(server, from(`198.51.100.${number}`)))
  // A blocked key is dropped after keysMax other blocked keys, not after keysMax other requests.
  expect(await get(server, from('203.0.113.1'))).toBe(429)
  await statuses(60, (number) => get(server, from(`192.0.2.${number >> 1}`)))
  expect(await get(server, from('203.0.113.1'))).toBe(200)
})

test('an external store can hold the counts and receives short keys but no tokens', async () => {
  const counts = new Map<string, number>()
  class Elsewhere {
    incr(key: string, done: (error: Error | null, result: { current: number; ttl: number }) => void) {
      counts.set(key, (counts.get(key) ?? 0) + 1)
      done(null, { current: counts.get(key) ?? 0, ttl: 30_000 })
    }
    child() {
      return this
    }
  }
  const store = Elsewhere as unknown as NonNullable<RateLimitPluginOptions['store']>
  const limits = new RequestLimits({ perMinute: 2, store: { store } })
  const client = `did:parley:${'x'.repeat(400)}`
  const introspector = limits.watch({ introspect: async () => ({ active: true, client_id: client }) })
  const server = await limitedServer(limits)
  await introspector.introspect('secret-token')
  expect(await get(server, { authorization: 'Bearer secret-token' })).toBe(200)
  expect(await get(server, { authorization: 'Bearer secret-token' })).toBe(429)
  expect(await get(server)).toBe(200)
  expect([...counts.values()]).toEqual([3, 1])
  const keys = [...counts.keys()].join()
  expect(keys).not.toContain('secret-token')
  expect(keys.length).toBeLessThan(100)
})

test('requests are rejected with 503 and Retry-After if the store fails', async () => {
  class Down {
    incr(_key: string, done: (error: Error) => void) {
      done(new Error('connect ECONNREFUSED'))
    }
    child() {
      return this
    }
  }
  const store = Down as unknown as NonNullable<RateLimitPluginOptions['store']>
  const server = await limitedServer(new RequestLimits({ perMinute: 2, store: { store } }))
  const answer = await raw(server, { path: '/open', method: 'GET' })
  expect([answer.status, answer.json.error.code, answer.headers.get('retry-after')]).toEqual([
    503,
    -32042,
    '2',
  ])
  expect(answer.text).not.toContain('ECONNREFUSED')
})

test('requests of a session count for its client until it has ended, and all others for their address', async () => {
  const limits = new RequestLimits({ perMinute: 2, sessionOf: ({ headers }) => headers.cookie })
  const server = await limitedServer(limits)
  const [of, unknown] = [{ cookie: 'session' }, { cookie: 'unknown' }]
  limits.recognize('session', { client_id: 'alice' })
  expect(await statuses(2, () => get(server, unknown))).toEqual([200, 200])
  expect(await statuses(3, () => get(server, of))).toEqual([200, 200, 429])
  limits.recognize('session', {})
  limits.recognize('other', { client_id: 'bob', requests_per_minute: 1 })
  expect(await statuses(2, () => get(server, { cookie: 'other' }))).toEqual([200, 429])
  expect(await get(server, of)).toBe(429)
})
