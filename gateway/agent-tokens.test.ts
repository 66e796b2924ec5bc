import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { forEachLimited } from './routing/forwarding/agent-query.ts'
import {
  agent,
  call,
  didClient,
  embeddedOAuth,
  type FakeAgent,
  fail,
  gateway,
  gatewayForEachTest,
  type OAuthClient,
  oauthClient,
  operatorClient,
  post,
  saying,
} from './testing.ts'

gatewayForEachTest({ ...embeddedOAuth, REGISTRY_ALLOWED_HOSTS: '127.0.0.1' })

const weather = 'Weather forecast for any city'
const chess = 'Plays chess, suggests the best move'
const bearerCard = { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } }
const external = { origin: 'registered', admittedBy: 'operator', card: bearerCard }

let alice: OAuthClient
let checker: OAuthClient
beforeEach(async () => {
  alice = await oauthClient('alice')
  checker = await didClient('checker')
  await agent('checker', 'Checks tokens', { owner: checker.id, did: checker.id })
})

const bearer = async (more?: Parameters<OAuthClient['token']>[0], client = alice) => ({
  authorization: `Bearer ${await client.token(more)}`,
})
const urlOf = ({ port }: FakeAgent) => `http://127.0.0.1:${port}`
const rpc = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 'one', method, params })
const forecast = () => rpc('message/send', saying('weather forecast'))
const received = (one: FakeAgent) => one.calls.map(({ headers }) => headers.authorization)
const tokenIn = (authorization: string | undefined) => authorization?.replace('Bearer ', '') ?? ''

const introspect = (token: string) => checker.introspect(token)

test('a supervised and an external agent receive tokens that were exchanged for exactly that agent', async () => {
  const sky = await agent('sky', weather, { did: 'did:parley:ann:sky:1' })
  const sea = await agent('sea', 'Forecast of tides', external)
  const authorization = `Bearer ${await alice.token({ scope: 'agent:write' })}`
  await post('/agents/sky/', forecast(), { authorization })
  await post('/agents/sea/', forecast(), { authorization })
  await call('message/send', saying('weather forecast'), { authorization })
  await call('message/send', saying('tides'), { authorization })
  for (const [one, aud] of [
    [sky, 'did:parley:ann:sky:1'],
    [sea, urlOf(sea)],
  ] as const) {
    const [first, second] = received(one)
    // The token is exchanged once and reused, however the agent is reached.
    expect(second).toBe(first)
    expect(await introspect(tokenIn(first))).toMatchObject({
      active: true,
      client_id: alice.id,
      aud,
      scope: 'agent:write',
      act: { sub: gateway().addresses.public },
    })
  }
})

test('an external agent without a security scheme receives no Authorization', async () => {
  const sky = await agent('sky', weather, { ...external, card: {} })
  const operator = await bearer({ scope: 'agent:admin' }, await operatorClient())
  for (const headers of [await bearer(), { authorization: 'Bearer nobody' }, operator])
    expect((await post('/agents/sky/', forecast(), headers)).status).toBe(200)
  await call('message/send', saying('weather forecast'), await bearer())
  expect(received(sky)).toEqual(Array(4).fill(undefined))
})

test('a token may name the gateway or the agent, and with another audience it is refused with 403', async () => {
  const [sky, sea] = [await agent('sky', weather, external), await agent('sea', 'Tides')]
  // Tokens are issued only for agents that exist.
  await agent('other', chess)
  const here = gateway().addresses.public
  for (const resource of [here, urlOf(sky), `${here}/agents/sky`])
    expect((await post('/agents/sky/', forecast(), await bearer({ resource }))).status).toBe(200)
  for (const [slug, one] of [
    ['sky', sky],
    ['sea', sea],
  ] as const) {
    one.calls.length = 0
    for (const resource of ['https://other.example', `${here}/agents/other`]) {
      const headers = await bearer({ resource })
      const refused = await post(`/agents/${slug}/`, forecast(), headers)
      const data = { reason: 'wrong_audience', agent: slug, resource: urlOf(one) }
      expect(refused).toMatchObject({ status: 403, json: { id: 'one', error: { code: -32013, data } } })
      expect(refused.json.error.message).toContain('get a token without an audience')
      expect(refused.json.error.message).toContain(`npx parley token --resource ${urlOf(one)}`)
      const skills = await fetch(`${here}/agents/${slug}/api/payment-status/x`, { headers })
      expect(skills.status).toBe(403)
    }
    expect(one.calls).toEqual([])
  }
})

test('a token that an agent received is refused by the gateway, at this agent and elsewhere', async () => {
  const [sky, sea] = [await agent('sky', weather), await agent('sea', 'Tides')]
  await post('/agents/sky/', forecast(), await bearer())
  const stolen = { authorization: received(sky)[0] ?? '' }
  sky.calls.length = 0
  for (const slug of ['sky', 'sea']) {
    const refused = await post(`/agents/${slug}/`, forecast(), stolen)
    expect([refused.status, refused.json.error.data.reason]).toEqual([403, 'wrong_audience'])
  }
  expect((await call('message/send', saying('weather'), stolen)).json.error.code).toBe(-32010)
  expect((await call('tasks/list', {}, stolen)).json.error.code).toBe(-32010)
  expect([...sky.calls, ...sea.calls]).toEqual([])
})

test('invalid tokens are refused by the gateway with the errors of an agent', async () => {
  const [sky, ours] = [await agent('sky', weather, external), await agent('ours', weather)]
  const revoked = await alice.token()
  await alice.revoke(revoked)
  for (const slug of ['sky', 'ours'])
    for (const [authorization, code] of [
      ['Basic abc', -32009],
      ['Bearer nobody', -32010],
      [`Bearer ${revoked}`, -32010],
    ] as const) {
      const refused = await post(`/agents/${slug}/`, forecast(), { authorization })
      expect([refused.status, refused.json.error.code, refused.json.id]).toEqual([401, code, 'one'])
      expect(refused.headers.get('www-authenticate')).toMatch(/^Bearer/)
    }
  expect([...sky.calls, ...ours.calls]).toEqual([])
})

test('requests without a token, and public routes with any token, reach a supervised agent without one', async () => {
  const ours = await agent('ours', weather)
  const seen: (string | undefined)[] = []
  ours.get = (_path, { headers }) => {
    seen.push(headers.authorization)
    return {}
  }
  const admin = await bearer({ scope: 'agent:admin' }, await operatorClient())
  const paths = ['/health', '/.well-known/agent.json', '/agent/skills', '/did/resolve?did=x', '/pay/abc']
  for (const path of paths)
    for (const headers of [{}, { authorization: 'Bearer nobody' }, await bearer(), admin]) {
      const answer = await fetch(`${gateway().addresses.public}/agents/ours${path}`, { headers })
      expect([path, answer.status]).toEqual([path, 200])
    }
  // The gateway itself serves the agent card.
  expect(seen).toEqual(Array((paths.length - 1) * 4).fill(undefined))
})

test('once a token is revoked, the token that the agent holds is inactive, and the gateway exchanges it no more', async () => {
  const [ours, sea] = [await agent('ours', weather), await agent('sea', 'Tides', external)]
  const token = await alice.token()
  const headers = { authorization: `Bearer ${token}` }
  for (const slug of ['ours', 'sea']) await post(`/agents/${slug}/`, forecast(), headers)
  const exchanged = tokenIn(received(ours)[0])
  expect(await introspect(exchanged)).toMatchObject({ active: true })
  await alice.revoke(token)
  expect(await introspect(exchanged)).toEqual({ active: false })
  // A supervised agent introspects the token. An external agent might not, so the gateway refuses the request itself.
  await post('/agents/ours/', forecast(), headers)
  expect(await introspect(tokenIn(received(ours).at(-1)))).toEqual({ active: false })
  sea.calls.length = 0
  expect((await post('/agents/sea/', forecast(), headers)).json.error.code).toBe(-32010)
  expect((await call('message/send', saying('weather'), headers)).json.error.code).toBe(-32010)
  // A second supervised agent, for which the token was not exchanged before, receives nothing.
  const other = await agent('other', chess)
  expect((await post('/agents/other/', forecast(), headers)).json.error.code).toBe(-32010)
  expect([...sea.calls, ...other.calls]).toEqual([])
})

/** Starts a server that records everything it is sent. */
async function recorder(answer: http.RequestListener = (_request, response) => void response.end('{}')) {
  const bytes: string[] = []
  const server = http.createServer((request, response) => {
    const record = async () => {
      const { method, url, rawHeaders } = request
      bytes.push([method, url, ...rawHeaders, await text(request)].join('\n'))
      answer(request, response)
    }
    void record()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  close.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bytes }
}
const close: (() => void)[] = []
afterEach(() => {
  while (close.length > 0) close.pop()?.()
})

const kinds: [string, object][] = [
  ['supervised', {}],
  ['external', external],
  ['external, without a security scheme', { ...external, card: {} }],
  ['admitted as the deployment’s own', { ...external, own: true, verified: true, did: 'did:parley:x:own:1' }],
]

test.each(kinds)(
  'whatever a caller sends, an agent that is %s receives no credential of the caller',
  async (_what, more) => {
    const [spy, other] = [await recorder(), await agent('other', chess)]
    await agent('spy', weather, { ...more, url: spy.url })
    const { id, context_id } = other.take(saying('chess')) as { id: string; context_id: string }
    const [plain, named] = [await alice.token(), await alice.token({ resource: gateway().addresses.public })]
    const admin = await (await operatorClient()).token({ scope: 'agent:read agent:write agent:admin' })
    for (const token of [plain, named, admin]) {
      const headers = {
        authorization: `Bearer ${token}`,
        'proxy-authorization': `Bearer ${token}`,
        cookie: `session=${token}`,
        dpop: token,
        'x-api-key': token,
        'x-forwarded-access-token': token,
      }
      const json = { ...headers, 'content-type': 'application/json' }
      const requests: [string, string, object, string?][] = [
        ['POST', '/', json, rpc('message/send', saying('weather forecast', { referenceTaskIds: [id] }))],
        ['POST', '/', json, rpc('message/stream', saying('weather forecast'))],
        ['POST', '/', json, rpc('tasks/get', { task_id: id })],
        ['POST', '/', json, rpc('tasks/get', { task_id: crypto.randomUUID() })],
        ['POST', '/', json, rpc('contexts/clear', { context_id })],
        ['POST', '/', json, rpc('tasks/list', {})],
        ['POST', '/', json, rpc('contexts/list', { limit: 1 })],
        ['POST', '/', json, rpc('message/send', saying('weather', { metadata: { payment_session_id: id } }))],
        ['POST', '/agents/spy/', json, forecast()],
        ['POST', '/agents/spy/', json, rpc('message/send', saying('x'.repeat(400_000)))],
        ['POST', '/agents/spy/message/stream', json, forecast()],
        ['POST', '/agents/spy/upload', { ...headers, 'content-type': 'text/csv' }, 'a,b'],
        ['PUT', '/agents/spy/x', headers, 'x'],
        ['DELETE', '/agents/spy/x', headers],
        ['GET', '/agents/spy/payments', headers],
        ['GET', '/agents/spy/payments/', headers],
        ['GET', '/agents/spy/health', headers],
        ['GET', '/agents/spy/pay/x', headers],
        ['GET', '/agents/spy/api/payment-status/x', headers],
        ['POST', '/agents/spy/api/start-payment-session', json, '{}'],
        ['POST', '/agents/spy/payments/x/refunded', json, '{}'],
        ['OPTIONS', '/agents/spy/', headers],
      ]
      await forEachLimited(requests, 8, async ([method, path, sent, body]) => {
        const answer = await fetch(`${gateway().addresses.local}${path}`, {
          method,
          headers: sent as Record<string, string>,
          redirect: 'manual',
          ...(body !== undefined && { body }),
        })
        await answer.text()
      })
    }
    expect(spy.bytes.length).toBeGreaterThan(20)
    for (const token of [plain, named, admin])
      expect(spy.bytes.filter((bytes) => bytes.includes(token))).toEqual([])
    for (const exchanged of new Set(spy.bytes.flatMap((bytes) => /Bearer (\S+)/.exec(bytes)?.[1] ?? [])))
      expect((await introspect(exchanged)).aud).toBe('did' in more ? 'did:parley:x:own:1' : spy.url)
  },
)

test('an agent’s redirects and challenges do not make the gateway send the token elsewhere', async () => {
  const elsewhere = await recorder()
  const spy = await recorder((request, response) => {
    const status = Number(/\d+/.exec(request.url ?? '')?.[0] ?? 307)
    const challenge = `Bearer resource_metadata="${elsewhere.url}/x", authorization_uri="${elsewhere.url}"`
    response.writeHead(status, {
      location: elsewhere.url,
      'www-authenticate': challenge,
      link: `<${elsewhere.url}>; rel="alternate"`,
      'content-location': elsewhere.url,
      refresh: `0; url=${elsewhere.url}`,
      'alt-svc': `h2="${elsewhere.url}"`,
    })
    response.end('{}')
  })
  await agent('spy', weather, { ...external, url: spy.url })
  const headers = await bearer()
  for (const status of [301, 302, 303, 307, 308, 401, 402, 503])
    for (const method of ['GET', 'POST'])
      await fetch(`${gateway().addresses.local}/agents/spy/status/${status}`, {
        method,
        headers,
        redirect: 'manual',
        ...(method === 'POST' && { body: 'x' }),
      })
  await fetch(`${gateway().addresses.local}/`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: forecast(),
    redirect: 'manual',
  })
  expect(spy.bytes.length).toBeGreaterThan(15)
  expect(elsewhere.bytes).toEqual([])
})

test('when a message is tried at another agent, each agent receives its own token', async () => {
  const [sky, sea] = [await agent('sky', weather), await agent('sea', weather)]
  for (const one of [sky, sea])
    one.on['message/send'] = ({ response, id }) => fail(response, id, 503, -32042, { reason: 'draining' })
  await call('message/send', saying('weather forecast'), await bearer())
  const tokens = [received(sky)[0], received(sea)[0]].map(tokenIn)
  expect(await Promise.all(tokens.map(async (token) => (await introspect(token)).aud))).toEqual([
    urlOf(sky),
    urlOf(sea),
  ])
})

test('a message that an external agent refuses with 401 goes to one further candidate', async () => {
  const sky = await agent('sky', weather, external)
  await agent('tides', 'Tells the height of tides, the phase of the moon and the names of all cities')
  sky.on['message/send'] = ({ response, id }) => fail(response, id, 401, -32010, {})
  const sent = await call('message/send', saying('weather forecast for any city'), await bearer())
  expect([sky.sent().length, sent.status, sent.headers.get('x-agent')]).toEqual([1, 200, 'tides'])
})

test('a token with agent:admin is exchanged for no agent', async () => {
  const [sky, ours] = [await agent('sky', weather, external), await agent('ours', weather)]
  const operator = await operatorClient()
  const scope = 'agent:read agent:write agent:admin'
  for (const [slug, one] of [
    ['sky', sky],
    ['ours', ours],
  ] as const)
    for (const more of [{ scope }, { scope, resource: urlOf(one) }]) {
      const refused = await post(`/agents/${slug}/`, forecast(), await bearer(more, operator))
      expect([refused.status, refused.json.error.data.reason]).toEqual([403, 'operator_token'])
    }
  for (const [method, params] of [
    ['message/send', saying('weather forecast')],
    ['tasks/get', { task_id: crypto.randomUUID() }],
    ['tasks/list', {}],
  ] as const) {
    const refused = await call(method, params, await bearer({ scope }, operator))
    expect([refused.status, refused.json.error.data.reason]).toEqual([403, 'operator_token'])
    expect(refused.json.error.message).toContain('use a token without that scope')
  }
  expect([...sky.calls, ...ours.calls]).toEqual([])
})

test('for the ledger of a supervised agent, an operator’s request carries a token with the scope agent:ledger only', async () => {
  const [ours, sky] = [await agent('ours', weather), await agent('sky', weather, external)]
  const operator = await operatorClient()
  const here = gateway().addresses.public
  const seen: [string | undefined, string | undefined][] = []
  ours.get = (_path, { url, headers }) => {
    seen.push([url, headers.authorization])
    return { payments: [] }
  }
  ours.on['refund'] = () => ({ success: true })
  const resources = [undefined, here, urlOf(ours)]
  for (const resource of resources) {
    const token = await operator.token({ scope: 'agent:admin', ...(resource && { resource }) })
    const headers = { authorization: `Bearer ${token}` }
    expect((await fetch(`${here}/agents/ours/payments?state=earned`, { headers })).status).toBe(200)
    const refund = await post('/agents/ours/payments/p1/refunded', rpc('refund', {}), headers)
    expect(refund.status).toBe(200)
    const elsewhere = await fetch(`${here}/agents/sky/payments`, { headers })
    expect(elsewhere.status).toBe(403)
  }
  expect(seen.map(([url]) => url)).toEqual(resources.map(() => '/payments?state=earned'))
  const tokens = [...seen.map(([, authorization]) => authorization), ...received(ours)].map(tokenIn)
  expect(tokens).toHaveLength(2 * resources.length)
  for (const token of tokens) {
    const { exp = 0, ...answer } = await introspect(token)
    expect(answer).toMatchObject({
      active: true,
      client_id: 'operator',
      scope: 'agent:ledger',
      aud: urlOf(ours),
      act: { sub: here },
    })
    expect(exp * 1000 - Date.now()).toBeLessThanOrEqual(60_000)
  }
  expect(sky.calls).toEqual([])
  // The operator's token must name the gateway or the agent, and a caller's token gives no access to the ledger.
  const other = await bearer({ scope: 'agent:admin', resource: 'https://other.example' }, operator)
  expect((await fetch(`${here}/agents/ours/payments`, { headers: other })).status).toBe(403)
  await fetch(`${here}/agents/ours/payments`, { headers: await bearer() })
  expect(await introspect(tokenIn(seen.at(-1)?.[1]))).toMatchObject({ scope: 'agent:read agent:write' })
})

test('no client can obtain a token with the scope agent:ledger', async () => {
  const operator = await operatorClient()
  const isWithoutLedger = async (token: Promise<string>) => {
    const scopeOf = async (issued: string) => `scopes: ${(await introspect(issued)).scope}`
    const scopes = await token.then(scopeOf, (refused: unknown) => String(refused))
    expect(scopes).toMatch(/invalid_(scope|request)|^scopes: (?!.*agent:ledger)/)
  }
  for (const client of [alice, operator])
    for (const scope of ['agent:ledger', 'agent:read agent:ledger', 'agent:admin agent:ledger'])
      await isWithoutLedger(client.token({ scope }))
  await expect(oauthClient('eve', { scope: 'agent:read agent:ledger' })).rejects.toThrow(
    /invalid_client_metadata/,
  )
  // Nor by exchanging a token that the gateway sent to an agent.
  const ours = await agent('ours', weather)
  let sent = ''
  ours.get = (_path, { headers }) => {
    sent = tokenIn(headers.authorization)
    return {}
  }
  const headers = await bearer({ scope: 'agent:admin' }, operator)
  await fetch(`${gateway().addresses.public}/agents/ours/payments`, { headers })
  for (const subject_token of [sent, await operator.token({ scope: 'agent:admin' }), await alice.token()])
    for (const scope of [undefined, 'agent:ledger'])
      await isWithoutLedger(
        checker.exchange({ subject_token, resource: urlOf(ours), ...(scope && { scope }) }),
      )
  // The gateway itself does not accept it either.
  const refused = await fetch(`${gateway().addresses.public}/agents/ours/payments`, {
    headers: { authorization: `Bearer ${sent}` },
  })
  expect(refused.status).toBe(403)
})

test('an agent that acts for a client sends messages and uses tasks under /agents/{slug}/, and nothing else', async () => {
  const ours = await agent('ours', weather)
  ours.get = () => ({})
  const here = gateway().addresses.public
  const subject_token = await alice.token({ resource: checker.id })
  const delegated = { authorization: `Bearer ${await checker.exchange({ subject_token, resource: here })}` }
  const sent = await post('/agents/ours/', forecast(), delegated)
  expect(sent.status).toBe(200)
  expect(await introspect(tokenIn(received(ours)[0]))).toMatchObject({
    client_id: alice.id,
    aud: urlOf(ours),
    act: { sub: here, act: { sub: checker.id } },
  })
  for (const [path, body] of [
    ['/', rpc('tasks/get', { task_id: sent.json.result.id })],
    ['/tasks/list', rpc('tasks/list', {})],
    ['/', rpc('message/send', saying('x'.repeat(400_000)))],
  ] as const)
    expect((await post(`/agents/ours${path}`, body, delegated)).status).toBe(200)
  ours.calls.length = 0
  for (const [path, body] of [
    ['/', rpc('contexts/clear', { context_id: 'x' })],
    ['/', rpc('contexts/list', {})],
    ['/', rpc('agent/getAuthenticatedExtendedCard', {})],
    ['/api/start-payment-session', '{}'],
    ['/payments/x/refunded', '{}'],
    ['/pay', rpc('message/send', saying('x'))],
  ] as const) {
    const refused = await post(`/agents/ours${path}`, body, delegated)
    expect([path, refused.status, refused.json.error.data.reason]).toEqual([path, 403, 'delegated_token'])
  }
  for (const [method, path] of [
    ['GET', '/payments'],
    ['GET', '/api/payment-status/x'],
    ['PUT', '/'],
    ['POST', '/'],
  ]) {
    const body = method === 'GET' ? {} : { body: 'a,b' }
    const refused = await fetch(`${here}/agents/ours${path}`, {
      method: method ?? '',
      headers: delegated,
      ...body,
    })
    expect([path, refused.status]).toEqual([path, 403])
  }
  expect(ours.calls).toEqual([])
})
