import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { HttpIntrospector } from '@parley/kit/auth/introspection'
import { LeasedIntrospector } from '@parley/kit/auth/leased-introspection'
import { startFaultyProxy } from '@parley/tools/testing/faulty-proxy'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { storedId } from '../exchange/sealed-tokens.ts'
import { basic, startIdentityProvider, type TestIdentityProvider, temporaryFolder } from '../testing.ts'
import { coherentStore } from './coherent-store.ts'
import { RevocationRate } from './revocations.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
let open: AsyncDisposableStack
beforeEach(async () => {
  open = new AsyncDisposableStack()
  folder = open.use(await temporaryFolder())
  server = open.use(await startIdentityProvider(folder))
})
afterEach(() => open.disposeAsync())

const ensure = (clientId: string, more = {}) =>
  server.provider.ensureClient({ clientId, clientName: clientId, scope: 'agent:read', ...more })

/** An agent's introspector. Its requests are counted by a proxy that can cut its connections. */
async function agent(clientId: string) {
  const credentials = await ensure(clientId, { introspection: true })
  const proxy = open.use(await startFaultyProxy(`${server.origin}/oauth2/introspect`))
  const http = new HttpIntrospector({ url: proxy.url, ...credentials, timeoutMs: 1500 })
  const introspector = open.use(new LeasedIntrospector({ http }))
  const isActive = async (token: string) => (await introspector.introspect(token)).active
  /** Waits until the token is answered from the cache. */
  const warm = async (token: string) => {
    for (let attempt = 0; attempt < 200; attempt += 1) {
      const first = await introspector.introspect(token)
      if ((await introspector.introspect(token)) === first && Object.isFrozen(first)) return first
      await wait(10)
    }
    throw new Error('the response is not cached')
  }
  return { introspector, proxy, isActive, warm, credentials }
}

async function revoke(token: string, as: { clientId: string; clientSecret: string }): Promise<number> {
  const from = performance.now()
  expect((await server.post('/oauth2/revoke', { token }, as)).status).toBe(200)
  return performance.now() - from
}

test('a cached response is the same frozen object and costs no request', async () => {
  const alice = await ensure('alice')
  const token = await server.token(alice)
  const first = await agent('agent-1')
  const answer = await first.warm(token)
  expect(answer).toMatchObject({
    active: true,
    client_id: 'alice',
    sub: 'alice',
    scope: 'agent:read',
    exp: expect.any(Number),
  })
  const before = first.proxy.requests
  for (let number = 0; number < 100; number += 1)
    expect(await first.introspector.introspect(token)).toBe(answer)
  // Only polls are sent.
  expect(first.proxy.requests - before).toBeLessThanOrEqual(2)
})

test('a revoked token is refused by the next request at two agents with warm caches', async () => {
  const alice = await ensure('alice')
  const agents = [await agent('agent-1'), await agent('agent-2')]
  for (let round = 0; round < 20; round += 1) {
    const [token, other] = [await server.token(alice), await server.token(alice)]
    for (const { warm } of agents) await Promise.all([warm(token), warm(other)])
    const tookMs = await revoke(token, alice)
    for (const { isActive } of agents) expect(await isActive(token)).toBe(false)
    // The agents acknowledge the revocation before their leases end.
    expect(tookMs).toBeLessThan(1500)
    for (const { isActive } of agents) expect(await isActive(other)).toBe(true)
  }
})

test('a removed client and a client with less access lose all tokens at once', async () => {
  const first = await agent('agent-1')
  const tokens = [await server.token(await ensure('alice')), await server.token(await ensure('bob'))]
  for (const token of tokens) await first.warm(token)
  await ensure('alice', { scope: 'agent:write' })
  expect(await Promise.all(tokens.map(first.isActive))).toEqual([false, true])
})

test('an agent without a connection keeps no token: a revocation returns when its lease has ended', async () => {
  const alice = await ensure('alice')
  const [first, second] = [await agent('agent-1'), await agent('agent-2')]
  const token = await server.token(alice)
  await Promise.all([first.warm(token), second.warm(token)])
  first.proxy.fault = 'silence'
  const tookMs = await revoke(token, alice)
  expect(tookMs).toBeGreaterThan(500)
  expect(tookMs).toBeLessThan(2500)
  expect(await second.isActive(token)).toBe(false)
  await expect(first.isActive(token)).rejects.toMatchObject({ error: 'Unavailable' })
  first.proxy.fault = 'none'
  await expect.poll(() => first.isActive(token).catch(() => 'unavailable'), { timeout: 10_000 }).toBe(false)
})

test('after an agent has left, a revocation does not wait for its lease', async () => {
  const alice = await ensure('alice')
  const first = await agent('agent-1')
  const token = await server.token(alice)
  await first.warm(token)
  await first.introspector[Symbol.asyncDispose]()
  expect(await revoke(token, alice)).toBeLessThan(1500)
})

test('a second revocation of the same token also waits for the holders', async () => {
  const alice = await ensure('alice')
  const first = await agent('agent-1')
  const token = await server.token(alice)
  await first.warm(token)
  first.proxy.fault = 'silence'
  const took = await Promise.all([revoke(token, alice), wait(50).then(() => revoke(token, alice))])
  expect(Math.min(...took)).toBeGreaterThan(500)
})

test.each(['grant', 'client', 'removed grant'])(
  'a repeated revocation of a token that is being removed with its %s waits for the holders',
  async (how) => {
    const [alice, exp] = [await ensure('alice'), inAnHour()]
    const first = await agent('agent-1')
    const [token, payload] = ['token-of-a-grant', { clientId: 'alice', accountId: 'operator', exp }]
    const { store } = server
    await store.upsert({ model: 'Grant', id: 'grant', payload, clientId: 'alice' })
    const ofGrant = { payload: { ...payload, grantId: 'grant' }, clientId: 'alice', grantId: 'grant' }
    await store.upsert({ model: 'AccessToken', id: storedId(token), ...ofGrant })
    await first.warm(token)
    first.proxy.fault = 'silence'
    // The holders do not acknowledge the first revocation before the end of the test.
    const pending = coherentStore(store, { invalidate: () => new Promise(() => {}) })
    if (how === 'removed grant') void pending.destroy('Grant', 'grant')
    await wait(50)
    void (how === 'client' ? pending.revokeByClientId('alice') : pending.revokeByGrantId('grant'))
    await expect.poll(() => store.find('AccessToken', storedId(token))).toBeUndefined()
    expect(await revoke(token, alice)).toBeGreaterThan(500)
    // Revocations by other clients do not wait.
    expect(await revoke(token, await ensure('bob'))).toBeLessThan(500)
  },
)

test('the lease route needs a client that may introspect', async () => {
  const alice = await ensure('alice')
  const poll = (headers: Record<string, string>, body = '{"holder":"h","poll":1}') =>
    server.fetch('/oauth2/introspection-leases', { method: 'POST', headers, body })
  expect((await poll({})).status).toBe(401)
  expect((await poll({ authorization: basic(alice) })).status).toBe(401)
  const { credentials } = await agent('agent-1')
  expect((await poll({ authorization: basic(credentials) }, '{"holder":1}')).status).toBe(400)
  const { status, body } = await poll({ authorization: basic(credentials) })
  expect([status, body['drop'], body['lease_ms']]).toEqual([200, 'all', 1900])
})

/** Returns the tags that the coherent store invalidates when the record is changed or removed. */
async function tagsOfChanges(model: string, id: string): Promise<string[]> {
  const tags: string[] = []
  const store = coherentStore(
    { ...server.store, upsert: async () => {}, destroy: async () => {} },
    { invalidate: async (some) => void tags.push(...some) },
  )
  await store.upsert({ model, id, payload: {} })
  await store.destroy(model, id)
  return tags
}

test('a change of any record that an introspection reads invalidates the response', async () => {
  const alice = await ensure('alice')
  const agentClient = await ensure('agent-1', { introspection: true })
  const token = await server.token(alice)
  const exp = Math.floor(Date.now() / 1000) + 600
  const exchanged = await server.provider.exchanger.exchange({
    subject: token,
    actor: agentClient.clientId,
    names: [],
    resource: 'http://agent.example',
  })
  const key = await server.provider.keys.create({ clientId: 'alice', name: 'key', scope: 'agent:read', exp })
  const find = vi.spyOn(server.store, 'find')
  for (const text of [token, exchanged.text, key?.key ?? '']) {
    find.mockClear()
    const { answer, tags } = await server.provider.introspectWithTags(text)
    expect(answer).toMatchObject({ active: true, client_id: 'alice' })
    const read = find.mock.calls.filter(([model]) => model !== 'ClientUse')
    expect(read.length).toBeGreaterThan(1)
    for (const [model, id] of read) {
      const invalidated = await tagsOfChanges(model, id)
      expect([model, invalidated.some((tag) => tags.includes(tag))]).toEqual([model, true])
    }
  }
})

test('a response ends with the grant of its token', async () => {
  const [token, now] = ['token-that-outlives-its-grant', Math.floor(Date.now() / 1000)]
  const payload = { clientId: 'alice', accountId: 'operator', grantId: 'grant' }
  const { store } = server
  await store.upsert({ model: 'Grant', id: 'grant', payload: { ...payload, exp: now + 60 } })
  await store.upsert({ model: 'AccessToken', id: storedId(token), payload: { ...payload, exp: now + 600 } })
  expect(await server.provider.introspect(token)).toMatchObject({ active: true, exp: now + 60 })
})

test('the revocation of a token that does not exist invalidates nothing', async () => {
  const alice = await ensure('alice')
  const [bob, key] = [await ensure('bob'), { clientId: 'alice', name: 'key', scope: 'agent:read' }]
  const first = await agent('agent-1')
  const token = await server.token(alice)
  await first.warm(token)
  const { seq } = await leaseState(first.credentials)
  const foreign = [
    await server.token(bob),
    (await server.provider.keys.create({ ...key, clientId: 'bob', exp: inAnHour() }))?.key,
  ]
  const unknown = ['nothing', 'pxt_AAAA', 'a'.repeat(43), ...foreign]
  for (const one of unknown) await revoke(one ?? '', alice)
  expect((await leaseState(first.credentials)).seq).toBe(seq)
  const before = await first.introspector.introspect(token)
  expect(Object.isFrozen(before)).toBe(true)
  const own = await server.provider.keys.create({ ...key, exp: inAnHour() })
  for (const one of [token, token, own?.key ?? '', own?.key ?? '']) await revoke(one, alice)
  expect((await leaseState(first.credentials)).seq).toBeGreaterThanOrEqual(seq + 4)
})

test('a client has 200 revocations, and 50 more per second', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const rate = new RevocationRate()
  const allowed = (count: number) =>
    Array.from({ length: count }, () => rate.allows({}, 'alice')).filter(Boolean).length
  expect(allowed(300)).toBe(200)
  vi.advanceTimersByTime(1000)
  expect(allowed(100)).toBe(50)
  const request = {}
  expect([rate.allows(request, 'alice'), rate.hasRefused(request), rate.hasRefused({})]).toEqual([
    false,
    true,
    false,
  ])
  expect(rate.allows({}, 'bob')).toBe(true)
  vi.useRealTimers()
})

test('a client that revokes too often is refused for a second, others are not', async () => {
  const [alice, bob] = [await ensure('alice'), await ensure('bob')]
  // No revocations are added meanwhile.
  vi.useFakeTimers({ toFake: ['performance'] })
  const flood = () => server.post('/oauth2/revoke', { token: 'nothing' }, alice)
  // No revocations are added during the flood, however long it takes.
  vi.useFakeTimers({ toFake: ['performance'] })
  const responses = await Promise.all(Array.from({ length: 300 }, flood))
  const statuses = responses.map(({ status }) => status)
  const refused = responses.find(({ status }) => status === 429)
  expect([refused?.headers.get('retry-after'), refused?.body['error']]).toEqual([
    '1',
    'temporarily_unavailable',
  ])
  expect(new Set(statuses)).toEqual(new Set([200, 429]))
  expect(statuses.filter((status) => status === 200).length).toBe(200)
  const token = await server.token(alice)
  await revoke(await server.token(bob), bob)
  vi.advanceTimersByTime(1000)
  await revoke(token, alice)
  expect(await server.provider.introspect(token)).toMatchObject({ active: false })
  vi.useRealTimers()
})

test('a refused revocation says so, and the token stays active', async () => {
  const alice = await ensure('alice')
  const token = await server.token(alice)
  const own = await server.provider.keys.create({
    clientId: 'alice',
    name: 'key',
    scope: 'agent:read',
    exp: inAnHour(),
  })
  // No revocations are added meanwhile.
  vi.useFakeTimers({ toFake: ['performance'] })
  await Promise.all(
    Array.from({ length: 200 }, () => server.post('/oauth2/revoke', { token: 'nothing' }, alice)),
  )
  for (const one of [token, own?.key ?? '']) {
    expect((await server.post('/oauth2/revoke', { token: one }, alice)).status).toBe(429)
    expect(await server.provider.introspect(one)).toMatchObject({ active: true })
  }
  // A revocation that is added while the request is processed does not turn the refusal into a success.
  const spy = vi.spyOn(RevocationRate.prototype, 'allows')
  spy.mockImplementationOnce(function (this: RevocationRate, ...args) {
    spy.mockRestore()
    const isAllowed = this.allows(...args)
    vi.advanceTimersByTime(1000)
    return isAllowed
  })
  expect((await server.post('/oauth2/revoke', { token }, alice)).status).toBe(429)
  expect(await server.provider.introspect(token)).toMatchObject({ active: true })
  vi.useRealTimers()
})

const inAnHour = () => Math.floor(Date.now() / 1000) + 3600

/** Polls as a new holder, whose answer has the number of the last invalidation. */
async function leaseState(as: { clientId: string; clientSecret: string }) {
  const poll = (applied?: object) =>
    server.fetch('/oauth2/introspection-leases', {
      method: 'POST',
      headers: { authorization: basic(as) },
      body: JSON.stringify({ holder: randomUUID(), poll: 1, ...(applied && { applied }), leave: true }),
    })
  const { body } = await poll()
  return { instance: String(body['instance']), seq: Number(body['seq']) }
}

test('a holder that claims to have applied a future invalidation gets no lease and acknowledges nothing', async () => {
  const alice = await ensure('alice')
  const { credentials } = await agent('agent-1')
  const token = await server.token(alice)
  const holder = randomUUID()
  const poll = (number: number, applied?: object) =>
    server.fetch('/oauth2/introspection-leases', {
      method: 'POST',
      headers: { authorization: basic(credentials) },
      body: JSON.stringify({ holder, poll: number, ...(applied && { applied }) }),
    })
  const { body: granted } = await poll(1)
  expect(granted['lease_ms']).toBe(1900)
  const future = { instance: granted['instance'], seq: Number.MAX_SAFE_INTEGER }
  expect((await poll(2, future)).body).toMatchObject({ drop: 'all', lease_ms: 0 })
  // The lease of the first answer still counts, because the second poll acknowledged nothing.
  expect(await revoke(token, alice)).toBeGreaterThan(500)
})
