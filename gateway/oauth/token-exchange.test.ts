import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type Credentials,
  startIdentityProvider,
  type TestIdentityProvider,
  temporaryFolder,
} from './testing.ts'
import { EmbeddedTokenExchange, hashOf, type SubjectToken } from './token-exchange.ts'

const gatewayUrl = 'https://gateway.example'
const gatewayDid = 'did:parley:op:gateway:1'
const agent = { id: 'a1', resource: 'did:parley:op:agent:1', names: ['https://gateway.example/agents/agent'] }

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
let alice: Credentials
let exchange: EmbeddedTokenExchange
beforeAll(async () => {
  folder = await temporaryFolder()
  server = await startIdentityProvider(folder)
  alice = await server.provider.ensureClient({
    clientId: 'alice',
    clientName: 'Alice',
    scope: 'agent:read agent:write agent:admin',
  })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})
afterEach(() => void vi.useRealTimers())

const start = () => {
  const { exchanger } = server.provider
  exchange = new EmbeddedTokenExchange({ exchanger, gatewayUrl, names: [gatewayUrl, gatewayDid] })
}
beforeAll(start)

const subjectOf = async (text: string): Promise<SubjectToken> => ({
  text,
  hash: hashOf(text),
  introspection: await server.provider.introspect(text),
})
const subject = async (form: Record<string, string> = {}) =>
  subjectOf(await server.token(alice, { scope: 'agent:read agent:write', ...form }))
const introspect = (token: string) => server.provider.introspect(token)
const later = (seconds: number) => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + seconds * 1000 })
}

describe('the gateway exchanges a caller’s token', () => {
  test('the new token acts for the caller, names the gateway as actor and one agent as audience', async () => {
    const caller = await subject({ scope: 'agent:read' })
    const token = await exchange.forAgent(caller, agent)
    expect(token).toMatch(/^pxt_[\w-]{100,}$/)
    const answer = await introspect(token)
    expect(answer).toEqual({
      active: true,
      client_id: 'alice',
      sub: 'alice',
      scope: 'agent:read',
      aud: agent.resource,
      act: { sub: gatewayUrl },
      token_type: 'Bearer',
      exp: expect.any(Number),
    })
    const seconds = (answer.exp ?? 0) - Date.now() / 1000
    expect(seconds).toBeGreaterThan(290)
    expect(seconds).toBeLessThanOrEqual(300)
  })

  test('it is cached per token and agent, and renewed before it expires', async () => {
    const [caller, other] = [await subject(), await subject()]
    const token = await exchange.forAgent(caller, agent)
    expect(await exchange.forAgent(caller, agent)).toBe(token)
    expect(await exchange.forAgent(other, agent)).not.toBe(token)
    expect(await exchange.forAgent(caller, { id: 'b', resource: 'did:key:b' })).not.toBe(token)
    later(230)
    expect(await exchange.forAgent(caller, agent)).toBe(token)
    later(20)
    const renewed = await exchange.forAgent(caller, agent)
    expect(renewed).not.toBe(token)
    expect(await introspect(token)).toMatchObject({ active: true })
    later(200)
    expect(await introspect(token)).toMatchObject({ active: false, exp: expect.any(Number) })
    expect(await introspect(renewed)).toMatchObject({ active: true })
  })

  test('concurrent requests share one exchange', async () => {
    const caller = await subject()
    const tokens = await Promise.all(Array.from({ length: 20 }, () => exchange.forAgent(caller, agent)))
    expect(new Set(tokens).size).toBe(1)
  })

  test('an exchange stores nothing', async () => {
    const write = vi.spyOn(server.store, 'upsert')
    const insert = vi.spyOn(server.store, 'insert')
    await exchange.forAgent(await subject(), agent)
    // The token of the caller itself is stored.
    expect(write.mock.calls.map(([{ model }]) => model)).toEqual(['ClientCredentials'])
    expect(insert).not.toHaveBeenCalled()
    vi.restoreAllMocks()
  })

  test('it ends with the caller’s token', async () => {
    const caller = await subject()
    later(3500)
    const token = await exchange.forAgent(caller, agent)
    expect((await introspect(token)).exp).toBe(caller.introspection.exp)
    later(101)
    await expect(exchange.forAgent(caller, agent)).rejects.toMatchObject({
      error: 'TokenExpired',
      status: 401,
    })
    expect((await introspect(token)).active).toBe(false)
  })

  test('after the caller’s token is revoked, the exchanged token is inactive and no other is issued', async () => {
    const caller = await subject()
    const token = await exchange.forAgent(caller, agent)
    await server.post('/oauth2/revoke', { token: caller.text }, alice)
    expect(await introspect(token)).toEqual({ active: false })
    await expect(exchange.forAgent(caller, { id: 'b', resource: 'did:key:b' })).rejects.toMatchObject({
      error: 'InvalidToken',
      status: 401,
    })
  })

  test.each(['nope', 'pxt_', 'pxt_AAAA', 'a.b.c', ''])('the unknown token %o is refused', async (text) => {
    const unknown = { text, hash: hashOf(text), introspection: { active: true } }
    await expect(exchange.forAgent(unknown, agent)).rejects.toMatchObject({ error: 'InvalidToken' })
  })

  test('an operator’s token is never exchanged', async () => {
    const caller = await subject({ scope: 'agent:read agent:admin' })
    await expect(exchange.forAgent(caller, agent)).rejects.toMatchObject({
      error: 'InsufficientPermissions',
      status: 403,
      data: { reason: 'operator_token' },
    })
  })

  test.each([gatewayUrl, `${gatewayUrl}/`, gatewayDid, agent.resource, agent.names[0] ?? ''])(
    'a token for %s is exchanged',
    async (resource) => {
      const token = await exchange.forAgent(await subject({ resource }), agent)
      expect(await introspect(token)).toMatchObject({ active: true, aud: agent.resource })
    },
  )

  test('a token for another server is refused', async () => {
    const caller = await subject({ resource: 'https://other.example' })
    await expect(exchange.forAgent(caller, agent)).rejects.toMatchObject({
      error: 'InsufficientPermissions',
      message: `The token is for https://other.example: get a token without an audience or for ${gatewayUrl}`,
      data: { reason: 'wrong_audience' },
    })
  })

  test('an exchanged token for an agent is not exchanged for another agent', async () => {
    const token = await exchange.forAgent(await subject(), agent)
    const attempt = exchange.forAgent(await subjectOf(token), { id: 'b', resource: 'did:key:b' })
    await expect(attempt).rejects.toMatchObject({ data: { reason: 'wrong_audience' } })
  })
})

test('the tags of an answer name the token, its root and the client', async () => {
  const caller = await subject()
  const token = await exchange.forAgent(caller, agent)
  const { tags } = await server.provider.introspectWithTags(token)
  expect(tags).toEqual([expect.stringMatching(/^t:[\w-]{36}$/), `t:${caller.hash}`, 'c:alice'])
  expect((await server.provider.introspectWithTags(caller.text)).tags).toEqual([
    `t:${caller.hash}`,
    'c:alice',
  ])
})
