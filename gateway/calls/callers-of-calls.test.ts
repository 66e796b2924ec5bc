import * as oauth from 'openid-client'
import { beforeEach, expect, test } from 'vitest'
import {
  agent,
  call,
  didClient,
  embeddedOAuth,
  type FakeAgent,
  gateway,
  gatewayForEachTest,
  type OAuthClient,
  oauthClient,
  operatorClient,
  saying as params,
  post,
  restart,
} from '../testing.ts'
import { interfaceCaller } from './interface-caller.ts'
import { answered, saying, testInterface } from './testing.ts'

const env = { ...embeddedOAuth, REGISTRY_ALLOWED_HOSTS: '127.0.0.1' }
gatewayForEachTest(env, { testInterface })

const weather = 'Weather forecast for any city'
let alice: OAuthClient
let sky: FakeAgent
let board: FakeAgent

beforeEach(async () => {
  alice = await oauthClient('alice')
  sky = await agent('sky', weather)
  board = await agent('board', 'Plays chess')
})

const bearer = async (client: OAuthClient, resource = '') =>
  `Bearer ${await client.token(resource === '' ? {} : { resource: `${gateway().addresses.public}${resource}` })}`
const send = (agentName?: string) => ({ send: saying('weather forecast', { agent: agentName }) })
const received = (one: FakeAgent) => one.calls.map(({ headers }) => headers.authorization)

test.each([undefined, 'sky'])(
  'an agent receives a token that was exchanged for it, and never that of the caller (agent: %s)',
  async (name) => {
    const checker = await didClient('checker')
    await agent('checker', 'Checks tokens', { owner: checker.id, did: checker.id })
    for (const resource of ['', '/mcp']) {
      const authorization = await bearer(alice, resource)
      expect((await answered(send(name), { authorization })).status).toBe(200)
      const [given = ''] = received(sky).splice(-1)
      expect(given).not.toBe(authorization)
      expect(await checker.introspect(given.replace('Bearer ', ''))).toMatchObject({
        active: true,
        client_id: alice.id,
        aud: `http://127.0.0.1:${sky.port}`,
        act: { sub: gateway().addresses.public },
      })
    }
  },
)

test('a token for the MCP endpoint of an agent reaches this agent only, and no call without an agent', async () => {
  const authorization = await bearer(alice, '/agents/sky/mcp')
  const sender = { authorization, path: '/agents/sky' }
  expect((await answered(send('sky'), sender)).json).toMatchObject({ agent: 'sky' })
  for (const [other, status] of [
    [send('board'), 403],
    [send(), 401],
    [{ get: { taskId: '11111111-2222-4333-8444-555555555555' } }, 401],
  ] as const)
    expect((await answered(other, sender)).status).toBe(status)
  expect(board.calls).toEqual([])
})

test.each([
  ['/mcp', ''],
  ['/v1/', ''],
  ['/agents/sky/mcp', '/agents/sky'],
  ['/agents/sky', '/agents/sky'],
  ['/other', '/other'],
  ['/mcp/other', '/mcp/other'],
])('the audience %s of a token for an interface becomes %s', (given, expected) => {
  const url = 'https://gateway.example'
  const audience = [url + given]
  const introspection = { active: true, aud: audience }
  const caller = {
    id: 'a',
    subject: 'a',
    scopes: new Set<never>(),
    audience,
    credentials: { token: 't', introspection },
  }
  expect(interfaceCaller(caller, url)).toMatchObject({
    audience: [url + expected],
    credentials: { introspection: { aud: [url + expected] } },
  })
})

test('a token for /mcp is refused by A2A, also after a call through the interface with the same token', async () => {
  const authorization = await bearer(alice, '/mcp')
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'message/send',
    params: params('weather forecast'),
  })
  for (const name of ['sky', undefined]) {
    expect((await answered(send(name), { authorization })).status).toBe(200)
    expect((await call('message/send', params('weather forecast'), { authorization })).status).toBe(401)
    expect((await post('/agents/sky/', body, { authorization })).status).toBe(403)
  }
  expect(sky.calls).toHaveLength(2)
})

test('a revoked token is refused by the next call', async () => {
  const token = await alice.token()
  const sender = { authorization: `Bearer ${token}` }
  expect((await answered(send('sky'), sender)).status).toBe(200)
  await alice.revoke(token)
  for (const name of ['sky', undefined]) expect((await answered(send(name), sender)).status).toBe(401)
  expect(sky.calls).toHaveLength(1)
})

test('a caller with a token that is bound to a key calls agents with one proof, for the address of the interface', async () => {
  const origin = gateway().addresses.public
  const authentication = oauth.ClientSecretBasic(alice.secret)
  const config = await oauth.discovery(new URL(origin), alice.id, alice.secret, authentication, {
    algorithm: 'oauth2',
    execute: [oauth.allowInsecureRequests],
  })
  const DPoP = oauth.getDPoPHandle(config, await oauth.randomDPoPKeyPair())
  const grant = { scope: 'agent:read agent:write', resource: `${origin}/mcp` }
  const { access_token: token } = await oauth.clientCredentialsGrant(config, grant, { DPoP })
  const headers = new Headers({ 'content-type': 'application/json' })
  for (const name of ['sky', undefined]) {
    const url = new URL(`${origin}/test-calls`)
    const body = JSON.stringify({ ...send(name), texts: ['weather forecast 1', 'weather forecast 2'] })
    const answer = await oauth.fetchProtectedResource(config, token, url, 'POST', body, headers, { DPoP })
    expect(answer.status).toBe(200)
  }
  expect(received(sky)).toHaveLength(4)
  expect(received(sky).every((given) => given?.startsWith('Bearer ') && !given.includes(token))).toBe(true)
  expect((await answered(send('sky'), { authorization: `Bearer ${token}` })).status).toBe(401)
})

test('the scope of the token and operator tokens are checked as in A2A, and the challenge names the interface', async () => {
  const readOnly = `Bearer ${await alice.token({ scope: 'agent:read' })}`
  const operator = `Bearer ${await (await operatorClient()).token({ scope: 'agent:admin' })}`
  for (const authorization of [readOnly, operator]) {
    const { status, json } = await answered(send(), { authorization })
    const theirs = await call('message/send', params('weather forecast'), { authorization })
    expect([status, json.error]).toEqual([403, theirs.json.error])
  }
  const refused = await answered(send(), { authorization: readOnly, path: '/agents/sky' })
  const { origin } = new URL(gateway().addresses.public)
  expect(refused.headers.get('www-authenticate')).toBe(
    `Bearer error="insufficient_scope", scope="agent:write", resource_metadata="${origin}/.well-known/oauth-protected-resource/agents/sky"`,
  )
  expect(sky.calls).toEqual([])
})

test('an agent that a policy hides from the caller is neither found nor called', async () => {
  const bob = await oauthClient('bob')
  const policy = { rules: [{ effect: 'allow', callers: [`client:${bob.id}`] }], default: 'deny' }
  const stored = { ...policy, changedAt: '2026-11-22T10:00:00.000Z', changedBy: 'operator' }
  await gateway().registry.setPolicy(gateway().registry.bySlug('sky')?.id ?? '', stored as never, () => {})
  const [hers, his] = [await bearer(alice, '/mcp'), await bearer(bob, '/mcp')]
  const hidden = await answered(send('sky'), { authorization: hers })
  expect(hidden.json.error).toEqual((await answered(send('unknown'), { authorization: hers })).json.error)
  expect((await answered(send(), { authorization: hers })).json.error.code).toBe(-32004)
  expect(sky.calls).toEqual([])
  for (const name of ['sky', undefined])
    expect((await answered(send(name), { authorization: his })).json).toMatchObject({ agent: 'sky' })
})

test('the calls of concurrent callers are sent with the token of their own caller', async () => {
  const callers = [alice, ...(await Promise.all(['bob', 'carol'].map((name) => oauthClient(name))))]
  const texts = Array.from({ length: 4 }, (_text, i) => `weather forecast ${i}`)
  await Promise.all(
    callers.flatMap((client) =>
      [undefined, 'sky'].map(async (name) => {
        const named = texts.map((text) => `${text} of ${client.id}`)
        const authorization = await bearer(client)
        const { json } = await answered(
          { send: saying('', { agent: name }), texts: named },
          { authorization },
        )
        expect(json).toHaveLength(texts.length)
      }),
    ),
  )
  const owners = new Map<string, Set<string>>()
  for (const { body, headers } of sky.calls) {
    const owner = / of ([\w-]+)/.exec(body)?.[1] ?? ''
    owners.set(owner, (owners.get(owner) ?? new Set()).add(headers.authorization ?? ''))
  }
  expect([...owners.keys()].sort()).toEqual(callers.map(({ id }) => id).sort())
  // Each caller has two bearer tokens, and each of these is exchanged once.
  const all = [...owners.values()].flatMap((tokens) => [...tokens])
  expect([all.length, new Set(all).size]).toEqual([6, 6])
})

test('a request that leads back to the interface is refused as a loop', async () => {
  const authorization = await bearer(alice)
  await answered(send('sky'), { authorization })
  const { via } = sky.calls[0]?.headers ?? {}
  expect(via?.split(',')).toHaveLength(1)
  const again = await answered(send('sky'), { authorization, headers: { via: via ?? '' } })
  expect([again.status, again.json.error.data.reason]).toEqual([503, 'loop'])
})

test('a request counts once for the limit, with all calls that it causes', async () => {
  await restart({ ...env, RATE_LIMIT_PER_MINUTE: '4' })
  await sky.register('sky', weather)
  const authorization = await bearer(alice)
  const texts = ['weather 1', 'weather 2', 'weather 3', 'weather 4', 'weather 5']
  for (const name of ['sky', undefined])
    expect((await answered({ ...send(name), texts }, { authorization })).json).toHaveLength(5)
  const statuses = []
  for (let i = 0; i < 5; i += 1) statuses.push((await answered(send('sky'), { authorization })).status)
  expect(statuses).toContain(429)
})
