import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestAgent, testAgent } from '@parley/agent/testing'
import { rpc } from '@parley/tools/testing/raw-http'
import { methods } from '@parley/wire/codecs/parley/methods'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { HttpIntrospector } from './introspection.ts'

let agent: TestAgent
beforeAll(async () => {
  agent = await testAgent({ handle: () => 'done' })
})
afterAll(() => agent[Symbol.asyncDispose]())

const past = Date.now() / 1000 - 10
const jwt = (claims: object) =>
  ['{"alg":"none"}', JSON.stringify(claims), 'x']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.')

const list = (headers: Record<string, string>) => rpc(agent, 'tasks/list', {}, { token: undefined, headers })

test.each<[string, Record<string, string>]>([
  ['no header', {}],
  ['an empty header', { authorization: '' }],
  ['another scheme', { authorization: 'Basic YTpi' }],
  ['no token', { authorization: 'Bearer ' }],
  ['two words', { authorization: 'Bearer a b' }],
  ['an overlong token', { authorization: `Bearer ${'x'.repeat(12_289)}` }],
])(
  'no bearer token on a protected method (%s): 401, -32009, WWW-Authenticate: Bearer',
  async (_name, headers) => {
    const answer = await list(headers)
    expect([answer.status, answer.json]).toEqual([
      401,
      { jsonrpc: '2.0', id: 'r-1', error: { code: -32009, message: expect.any(String), data: {} } },
    ])
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  },
)

test('every method is protected, including unknown ones', async () => {
  for (const method of [...methods.keys(), 'nothing']) {
    const answer = await rpc(agent, method, {}, { token: undefined })
    expect([method, answer.status, answer.json.error.code]).toEqual([method, 401, -32009])
  }
})

test('the caller is checked before the body, so a malformed body without a token returns -32009', async () => {
  expect((await rpc(agent, '', {}, { token: undefined, body: '{' })).json.error.code).toBe(-32009)
})

test.each<[string, () => string, number]>([
  ['unknown', () => 'unknown-token', -32010],
  [
    'revoked',
    () => {
      const token = agent.identityProvider.issue('alice')
      agent.identityProvider.revoke(token)
      return token
    },
    -32010,
  ],
  ['active: true with exp in the past', () => agent.identityProvider.issue('alice', { exp: past }), -32011],
  [
    'active: false with exp in the past',
    () => agent.identityProvider.issue('alice', { active: false, exp: past }),
    -32011,
  ],
  ['an expired JWT', () => jwt({ exp: past }), -32011],
  ['a JWT that is not expired', () => jwt({ exp: past + 1000 }), -32010],
  ['a JWT with a string as exp', () => jwt({ exp: 'yesterday' }), -32010],
  ['a malformed JWT', () => 'a.!!!.c', -32009],
  ['a JWT whose payload is not JSON', () => 'a.bm9uc2Vuc2U.c', -32010],
  [
    'restricted to another audience',
    () => agent.identityProvider.issue('alice', { aud: 'https://other.example' }),
    -32010,
  ],
  ['restricted to other audiences', () => agent.identityProvider.issue('alice', { aud: ['a', 'b'] }), -32010],
  [
    'without a client',
    () => agent.identityProvider.issue('alice', { client_id: undefined, sub: undefined }),
    -32010,
  ],
])('a token that is %s receives 401 and its code', async (_name, issue, code) => {
  const answer = await list({ authorization: `Bearer ${issue()}` })
  expect([answer.status, answer.json.error.code, answer.json.id]).toEqual([401, code, 'r-1'])
  const challenge = code === -32009 ? 'Bearer' : 'Bearer error="invalid_token", error_description='
  expect(answer.headers.get('www-authenticate')).toContain(challenge)
})

test('an audience that names this server by address or DID is accepted', async () => {
  for (const aud of [agent.url, `${agent.url}/`, agent.did, ['x', agent.url]]) {
    const token = agent.identityProvider.issue('alice', { aud })
    expect((await rpc(agent, 'tasks/list', {}, { token })).status).toBe(200)
  }
  const none = agent.identityProvider.issue('alice', { aud: [] })
  expect((await rpc(agent, 'tasks/list', {}, { token: none })).status).toBe(200)
})

test('the owner is client_id, or sub if there is no client_id', async () => {
  const bySub = agent.identityProvider.issue('x', { client_id: undefined, sub: 'sub-user' })
  await rpc(agent, 'message/send', { message: aMessage() }, { token: bySub })
  const byClient = agent.identityProvider.issue('sub-user')
  expect((await rpc(agent, 'tasks/list', {}, { token: byClient })).json.result).toHaveLength(1)
})

const aMessage = () => ({
  role: 'user',
  kind: 'message',
  messageId: crypto.randomUUID(),
  parts: [{ kind: 'text', text: 'hi' }],
})

const reads = [
  'tasks/get',
  'tasks/list',
  'tasks/events',
  'tasks/resubscribe',
  'contexts/list',
  'agent/getAuthenticatedExtendedCard',
  'tasks/pushNotificationConfig/get',
  'tasks/pushNotificationConfig/list',
]
const writes = [
  'message/send',
  'message/stream',
  'tasks/cancel',
  'tasks/feedback',
  'contexts/clear',
  'tasks/pushNotificationConfig/set',
  'tasks/pushNotificationConfig/delete',
]

test('every method has an expected scope', () => {
  expect([...methods.keys()].sort()).toEqual([...reads, ...writes].sort())
})

test.each([
  ...reads.map((method) => [method, 'agent:read', 'agent:write']),
  ...writes.map((method) => [method, 'agent:write', 'agent:read']),
] as [string, string, string][])(
  '%s requires %s or agent:execute and otherwise returns -32013 with 403',
  async (method, needed, other) => {
    const codeWith = async (scope: string | undefined) =>
      (await rpc(agent, method, {}, { token: agent.identityProvider.issue('alice', { scope }) })).json.error
        ?.code
    for (const scope of [other, '', undefined, 'agent:admin', `${needed}x`, needed.toUpperCase()]) {
      expect([scope, await codeWith(scope)]).toEqual([scope, -32013])
    }
    for (const scope of [needed, 'agent:execute', `openid ${needed}`])
      expect(await codeWith(scope)).not.toBe(-32013)
    const refused = await rpc(
      agent,
      method,
      {},
      { token: agent.identityProvider.issue('alice', { scope: other }) },
    )
    expect(refused.status).toBe(403)
    expect(refused.headers.get('www-authenticate')).toBe(
      `Bearer error="insufficient_scope", scope="${needed}"`,
    )
    expect(refused.json.error.data).toEqual({ reason: 'scope', required: needed })
  },
)

test('a token is introspected on every request, so a revoked token is rejected on the next call', async () => {
  const { token } = agent.caller('alice')
  expect((await rpc(agent, 'tasks/list', {}, { token })).status).toBe(200)
  agent.identityProvider.revoke(token)
  expect((await rpc(agent, 'tasks/list', {}, { token })).json.error.code).toBe(-32010)
})

test.each(['status 500', 'not json', 'silence'] as const)(
  'the provider returns %s: 503, -32042; the next call succeeds',
  async (fault) => {
    const { token } = agent.caller('alice')
    agent.identityProvider.fault = fault
    const answer = await rpc(agent, 'message/send', { message: aMessage() }, { token })
    agent.identityProvider.fault = 'none'
    expect([answer.status, answer.json]).toMatchObject([
      503,
      { id: 'r-1', error: { code: -32042, data: { reason: 'oauth' } } },
    ])
    expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(answer.text).not.toContain('127.0.0.1')
    // One failure does not open the circuit breaker.
    expect((await rpc(agent, 'tasks/list', {}, { token })).status).toBe(200)
  },
)

test('requests receive 503 with -32042 while the provider is unavailable', async () => {
  await using lonely = await testAgent({ handle: () => 'done' })
  const { token } = lonely.caller('alice')
  await lonely.identityProvider[Symbol.asyncDispose]()
  const answer = await rpc(lonely, 'tasks/list', {}, { token })
  expect([answer.status, answer.json.error.code]).toEqual([503, -32042])
})

test('64 concurrent calls share introspections, and a later call starts a new one', async () => {
  let requests = 0
  const answers: (() => void)[] = []
  await using provider = await providerThat((_request, response) => {
    requests += 1
    answers.push(() => response.end('{"active":true,"client_id":"alice"}'))
  })
  const all = Array.from({ length: 64 }, () => provider.introspector.introspect('same'))
  const other = provider.introspector.introspect('another')
  await expect.poll(() => answers.length).toBe(2)
  for (const answer of answers) answer()
  expect((await Promise.all([...all, other])).every(({ active }) => active)).toBe(true)
  expect(requests).toBe(2)
  const next = provider.introspector.introspect('same')
  await expect.poll(() => answers.length).toBe(3)
  answers[2]?.()
  await next
})

test.each<[string, RequestListener]>([
  ['redirects', (_request, response) => response.writeHead(302, { location: '/other' }).end()],
  ['returns 401', (_request, response) => response.writeHead(401).end('{"active":true,"client_id":"a"}')],
  ['sends active as a string', (_request, response) => response.end('{"active":"true","client_id":"a"}')],
  ['omits active', (_request, response) => response.end('{"client_id":"a"}')],
  ['sends an array', (_request, response) => response.end('[{"active":true}]')],
  [
    'never ends its response',
    (_request, response) => {
      const more = () => response.writable && response.write('x'.repeat(65_536), more)
      more()
    },
  ],
  [
    'sends its response too slowly',
    (_request, response) => {
      const timer = setInterval(() => response.write(' '), 50)
      response.on('close', () => clearInterval(timer))
    },
  ],
  [
    'closes the connection early',
    (_request, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{"active":true')
      setImmediate(() => response.destroy())
    },
  ],
])('requests are rejected with Unavailable if the provider %s', async (_name, listener) => {
  await using provider = await providerThat(listener)
  await expect(provider.introspector.introspect('token')).rejects.toMatchObject({ code: -32042, status: 503 })
})

test('a provider that does not respond delays each of many callers by at most the time limit', async () => {
  await using provider = await providerThat(() => {})
  const all = Array.from({ length: 100 }, (_, i) => provider.introspector.introspect(`token-${i}`))
  const outcomes = await Promise.allSettled(all)
  expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true)
})

/** Responds like a healthy provider, except for tokens that begin with `bad`. */
const exceptBad =
  (listener: RequestListener): RequestListener =>
  async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    if (body.startsWith('token=bad')) listener(request, response)
    else response.end('{"active":true,"client_id":"alice"}')
  }

test.each<[string, RequestListener]>([
  ['status 500', (_request, response) => response.writeHead(500).end()],
  ['status 429', (_request, response) => response.writeHead(429).end()],
  ['a malformed response', (_request, response) => response.end('nonsense')],
  ['a response that is too large', (_request, response) => response.end('x'.repeat(100_000))],
])(
  'repeated introspection failures of one token (%s) do not affect other tokens',
  async (_name, listener) => {
    await using provider = await providerThat(exceptBad(listener))
    for (let i = 0; i < 20; i += 1)
      await expect(provider.introspector.introspect(`bad-${i}`)).rejects.toMatchObject({ status: 503 })
    expect(await provider.introspector.introspect('good')).toMatchObject({ active: true })
  },
)

test('one introspection whose connection breaks leaves other callers unaffected', async () => {
  await using provider = await providerThat(exceptBad((request) => request.socket.destroy()))
  await expect(provider.introspector.introspect('bad')).rejects.toMatchObject({ status: 503 })
  expect(await provider.introspector.introspect('good')).toMatchObject({ active: true })
})

test('after several consecutive connection failures, the circuit breaker opens and no further request is sent', async () => {
  let requests = 0
  await using provider = await providerThat((request) => {
    requests += 1
    request.socket.destroy()
  })
  const fail = (token: string) =>
    expect(provider.introspector.introspect(token)).rejects.toMatchObject({ status: 503 })
  for (let i = 0; i < 5; i += 1) await fail(`token-${i}`)
  const before = requests
  for (let i = 0; i < 20; i += 1) await fail(`another-${i}`)
  expect(requests).toBe(before)
})

test('an error response from the provider does not open the circuit breaker', async () => {
  let requests = 0
  await using provider = await providerThat((_request, response) => {
    requests += 1
    response.writeHead(401).end()
  })
  for (const token of ['one', 'two'])
    await expect(provider.introspector.introspect(token)).rejects.toMatchObject({ status: 503 })
  expect(requests).toBe(2)
})

test('concurrent introspections share one discovery', async () => {
  let looked = 0
  const lost = async () => {
    looked += 1
    await new Promise((resolve) => setImmediate(resolve))
    throw new Error('no metadata')
  }
  await using introspector = new HttpIntrospector({ url: lost, clientId: 'agent', clientSecret: 'secret' })
  const introspect = (token: string) =>
    expect(introspector.introspect(token)).rejects.toMatchObject({ status: 503 })
  await Promise.all(['one', 'two', 'three'].map(introspect))
  expect(looked).toBe(1)
})

async function providerThat(listener: RequestListener) {
  const server: Server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const introspector = new HttpIntrospector({
    url,
    clientId: 'agent',
    clientSecret: 'secret',
    timeoutMs: 400,
  })
  return {
    introspector,
    async [Symbol.asyncDispose]() {
      await introspector[Symbol.asyncDispose]()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
