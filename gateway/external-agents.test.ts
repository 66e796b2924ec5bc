import { expect, test } from 'vitest'
import {
  agent,
  bearer,
  call,
  gateway,
  gatewayForEachTest,
  identityProvider,
  post,
  saying,
} from './testing.ts'

gatewayForEachTest({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1' })

const weather = 'Weather forecast for any city'
const bearerCard = { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } }
const external = { origin: 'registered', admittedBy: 'operator', card: bearerCard }

const tokenFor = (aud: string | string[], scope = 'agent:read agent:write') =>
  `Bearer ${identityProvider().issue('alice', { aud, scope })}`
const urlOf = ({ port }: { port: number }) => `http://127.0.0.1:${port}`
const rpc = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 'one', method, params })
const forecast = () => rpc('message/send', saying('weather forecast'))

test('a token without the named external agent as its audience is rejected with 403 and not forwarded', async () => {
  const sky = await agent('sky', weather, external)
  for (const authorization of [bearer('alice'), tokenFor('https://other.example')]) {
    const refused = await post('/agents/sky/', forecast(), { authorization })
    expect(refused).toMatchObject({
      status: 403,
      json: {
        id: 'one',
        error: { code: -32013, data: { reason: 'wrong_audience', agent: 'sky', resource: urlOf(sky) } },
      },
    })
    expect(refused.json.error.message).toContain(`npx parley token --resource ${urlOf(sky)}`)
  }
  const skills = await fetch(`${gateway().addresses.public}/agents/sky/agent/skills`, {
    headers: { authorization: bearer('alice') },
  })
  expect(skills.status).toBe(403)
  expect(sky.calls).toEqual([])
})

test('a token with the named external agent as its audience is forwarded unmodified', async () => {
  const sky = await agent('sky', weather, external)
  for (const aud of [urlOf(sky), `${gateway().addresses.public}/agents/sky`]) {
    const authorization = tokenFor(aud)
    expect((await post('/agents/sky/', forecast(), { authorization })).status).toBe(200)
    expect(sky.sent().at(-1)?.headers.authorization).toBe(authorization)
  }
})

test('an inactive token is rejected before it reaches a named external agent', async () => {
  const sky = await agent('sky', weather, external)
  const ours = await agent('ours', weather)
  const authorization = 'Bearer nobody'
  const refused = await post('/agents/sky/', forecast(), { authorization })
  expect([refused.status, refused.json.error.code, refused.json.id]).toEqual([401, -32010, 'one'])
  expect(sky.calls).toEqual([])
  // A supervised agent rejects the token itself.
  await post('/agents/ours/', forecast(), { authorization })
  expect(ours.sent().at(-1)?.headers.authorization).toBe(authorization)
})

test('an external agent without a security scheme on its card receives the request without Authorization', async () => {
  const sky = await agent('sky', weather, { ...external, card: {} })
  for (const authorization of [bearer('alice'), 'Bearer nobody', bearer('root', 'agent:read agent:admin')])
    expect((await post('/agents/sky/', forecast(), { authorization })).status).toBe(200)
  expect((await call('message/send', saying('weather forecast'))).headers.get('x-agent')).toBe('sky')
  expect(sky.sent().map(({ headers }) => headers.authorization)).toEqual(Array(4).fill(undefined))
})

test('a message that names no agent goes to the next agent that may receive the token', async () => {
  const sky = await agent('sky', weather, external)
  await agent('tides', 'Forecast of tides')
  const sent = await call('message/send', saying('weather forecast'))
  expect([sent.status, sent.headers.get('x-agent')]).toEqual([200, 'tides'])
  expect(sky.calls).toEqual([])
  const record = await fetch(
    `${gateway().addresses.public}/negotiations/${sent.headers.get('x-negotiation-id')}`,
    { headers: { authorization: bearer('alice') } },
  )
  expect(((await record.json()) as { excluded: object[] }).excluded).toContainEqual({
    agent: 'sky',
    rule: 'it is external, and the token does not name it',
  })
})

test('if only an external agent can handle a message, a 403 explains how to get a token for that agent', async () => {
  const sky = await agent('sky', weather, external)
  await agent('board', 'Plays chess')
  const refused = await call('message/send', saying('weather forecast'))
  expect(refused).toMatchObject({
    status: 403,
    json: { error: { code: -32013, data: { reason: 'wrong_audience', agent: 'sky', resource: urlOf(sky) } } },
  })
  expect((await call('message/send', saying('bake a cake'))).json.error.code).toBe(-32004)
  const authorization = tokenFor([gateway().addresses.public, urlOf(sky)])
  const sent = await call('message/send', saying('weather forecast'), { authorization })
  expect([sent.status, sent.headers.get('x-agent')]).toEqual([200, 'sky'])
  expect(sky.sent().map(({ headers }) => headers.authorization)).toEqual([authorization])
})

test('a task at an external agent can be read only with a token that names the agent', async () => {
  const sky = await agent('sky', weather, external)
  const authorization = tokenFor([gateway().addresses.public, urlOf(sky)])
  const { id, context_id } = (await call('message/send', saying('weather forecast'), { authorization })).json
    .result as Record<string, string>
  const params = { task_id: id }
  for (const [method, more] of [
    ['tasks/get', params],
    ['tasks/cancel', params],
    ['contexts/clear', { context_id }],
    ['message/send', saying('and tomorrow?', { contextId: context_id })],
  ] as const)
    expect((await call(method, more)).json.error.data.reason).toBe('wrong_audience')
  expect(sky.calls).toHaveLength(1)
  expect((await call('tasks/get', params, { authorization })).status).toBe(200)
})

test('merged lists send nothing to an external agent and report it in X-Parley-Incomplete', async () => {
  const sky = await agent('sky', weather, external)
  const board = await agent('board', 'Plays chess')
  const authorization = tokenFor([gateway().addresses.public, urlOf(sky)])
  await call('message/send', saying('weather forecast'), { authorization })
  await call('message/send', saying('play chess'))
  await call('message/send', saying('play chess'))
  const [got] = sky.calls.splice(0)
  expect(got?.headers.authorization).toBe(authorization)
  for (const method of ['tasks/list', 'contexts/list']) {
    const page = await call(method, { limit: 1 })
    expect(page.headers.get('x-parley-incomplete')).toContain('sky')
    const cursor = page.headers.get('x-next-cursor')
    if (cursor !== null) await call(method, { limit: 1, cursor })
    expect(board.sent(method)).not.toEqual([])
  }
  expect(sky.calls).toEqual([])
})

test('references to unknown tasks send nothing to an external agent', async () => {
  const sky = await agent('sky', weather, external)
  const unknown = crypto.randomUUID()
  expect((await call('tasks/get', { task_id: unknown })).status).toBe(404)
  expect((await call('contexts/clear', { context_id: unknown })).status).toBe(404)
  expect(sky.calls).toEqual([])
})

test('a token with agent:admin is forwarded to no agent', async () => {
  const [sky, ours] = [await agent('sky', weather, external), await agent('ours', weather)]
  const scope = 'agent:read agent:write agent:admin'
  for (const authorization of [bearer('root', scope), tokenFor(urlOf(sky), scope)]) {
    const refused = await post('/agents/sky/', forecast(), { authorization })
    expect([refused.status, refused.json.error.data.reason]).toEqual([403, 'operator_token'])
  }
  const named = await post('/agents/ours/', forecast(), { authorization: bearer('root', scope) })
  expect([named.status, named.json.error.data.reason]).toEqual([403, 'operator_token'])
  for (const [method, params] of [
    ['message/send', saying('weather forecast')],
    ['tasks/get', { task_id: crypto.randomUUID() }],
    ['tasks/list', {}],
  ] as const) {
    const refused = await call(method, params, { authorization: bearer('root', scope) })
    expect([refused.status, refused.json.error.data.reason]).toEqual([403, 'operator_token'])
    expect(refused.json.error.message).toContain('use a token without that scope')
  }
  expect([...sky.calls, ...ours.calls]).toEqual([])
})

test('an operator reads the ledger of a supervised agent with a token that is valid only for that agent', async () => {
  const ours = await agent('ours', weather)
  const seen: (string | undefined)[] = []
  ours.get = (_path, { headers }) => {
    seen.push(headers.authorization)
    return { payments: [] }
  }
  const authorization = tokenFor(urlOf(ours), 'agent:admin')
  const answer = await fetch(`${gateway().addresses.public}/agents/ours/payments`, {
    headers: { authorization },
  })
  expect([answer.status, seen]).toEqual([200, [authorization]])
})

test('no token is forwarded if the OAuth server does not respond', async () => {
  const [sky, ours] = [await agent('sky', weather, external), await agent('ours', weather)]
  identityProvider().fault = 'status 500'
  for (const slug of ['sky', 'ours']) {
    const authorization = `Bearer unknown-${slug}`
    expect((await post(`/agents/${slug}/`, forecast(), { authorization })).status).toBe(503)
  }
  expect([...sky.calls, ...ours.calls]).toEqual([])
})
