import { expect, test } from 'vitest'
import { agent, call, gateway, gatewayForEachTest, identityProvider, post, saying } from './testing.ts'

gatewayForEachTest({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1' })

const weather = 'Weather forecast for any city'
const bearerCard = { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } }
const external = { origin: 'registered', admittedBy: 'operator', card: bearerCard }

const tokenFor = (aud: string | string[], scope = 'agent:read agent:write') =>
  `Bearer ${identityProvider().issue('alice', { aud, scope })}`
const urlOf = ({ port }: { port: number }) => `http://127.0.0.1:${port}`
const rpc = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 'one', method, params })
const forecast = () => rpc('message/send', saying('weather forecast'))

test('a task at an external agent is read and continued at that agent', async () => {
  const sky = await agent('sky', weather, external)
  const authorization = tokenFor([gateway().addresses.public, urlOf(sky)])
  const sent = await call('message/send', saying('weather forecast'), { authorization })
  expect([sent.status, sent.headers.get('x-agent')]).toEqual([200, 'sky'])
  const { id, context_id } = sent.json.result
  for (const [method, params] of [
    ['tasks/get', { task_id: id }],
    ['message/send', saying('and tomorrow?', { contextId: context_id })],
    ['contexts/clear', { context_id }],
  ] as const) {
    const answer = await call(method, params, { authorization })
    expect([method, answer.status, answer.headers.get('x-agent')]).toEqual([method, 200, 'sky'])
  }
  expect(sky.calls).toHaveLength(4)
})

test('merged lists send nothing to an external agent and report it in X-Parley-Incomplete', async () => {
  const sky = await agent('sky', weather, external)
  const board = await agent('board', 'Plays chess')
  const authorization = tokenFor([gateway().addresses.public, urlOf(sky)])
  await call('message/send', saying('weather forecast'), { authorization })
  await call('message/send', saying('play chess'))
  await call('message/send', saying('play chess'))
  const [got] = sky.calls.splice(0)
  expect(got?.method).toBe('message/send')
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

test('no token is forwarded if the OAuth server does not respond', async () => {
  const [sky, ours] = [await agent('sky', weather, external), await agent('ours', weather)]
  identityProvider().fault = 'status 500'
  for (const slug of ['sky', 'ours']) {
    const authorization = `Bearer unknown-${slug}`
    expect((await post(`/agents/${slug}/`, forecast(), { authorization })).status).toBe(503)
  }
  expect([...sky.calls, ...ours.calls]).toEqual([])
})

test('with an external OAuth server, agents receive a statement, and a revoked token is refused at the next request', async () => {
  const [ours, sky] = [await agent('ours', 'Plays chess'), await agent('sky', weather, external)]
  const token = identityProvider().issue('alice')
  const headers = { authorization: `Bearer ${token}` }
  const send = (slug: string) => post(`/agents/${slug}/`, forecast(), headers)
  for (const slug of ['ours', 'sky', 'ours', 'sky']) expect((await send(slug)).status).toBe(200)
  expect((await call('message/send', saying('play chess'), headers)).headers.get('x-agent')).toBe('ours')
  for (const one of [ours, sky]) {
    const [first, ...others] = one.sent().map((sent) => sent.headers.authorization?.replace('Bearer ', ''))
    // The statement is signed once.
    expect(others).toEqual(others.map(() => first))
    const [header, payload] = (first ?? '').split('.').slice(0, 2).map(decoded)
    expect(header).toMatchObject({ typ: 'parley-statement+jwt' })
    expect(payload).toMatchObject({
      client_id: 'alice',
      aud: urlOf(one),
      act: { sub: gateway().addresses.public },
    })
    one.calls.length = 0
  }
  identityProvider().revoke(token)
  for (const slug of ['ours', 'sky'])
    expect(await send(slug)).toMatchObject({ status: 401, json: { id: 'one', error: { code: -32010 } } })
  for (const [method, params] of [
    ['message/send', saying('play chess')],
    ['tasks/list', {}],
  ] as const)
    expect((await call(method, params, headers)).status).toBe(401)
  expect([...ours.calls, ...sky.calls]).toEqual([])
})

function decoded(part: string): unknown {
  return JSON.parse(Buffer.from(part, 'base64url').toString())
}
