import { raw } from '@parley/tools/testing/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

let agent: TestAgent
let token: string
beforeAll(async () => {
  agent = await testAgent({ handle: ({ text }) => text })
  token = agent.caller('alice').token
})
afterAll(() => agent[Symbol.asyncDispose]())

const post = (body: object, path = '/a2a/v0.3') =>
  raw(agent, {
    path,
    token,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', ...body }),
  })
const unknown = 'c1f3c8f2-0000-4000-8000-000000000000'

test.each<[string, object, number]>([
  ['without a method', { id: 1, params: {} }, -32600],
  ['with an object as ID', { id: {}, method: 'tasks/get' }, -32600],
  ['without an ID, for an unknown method', { method: 'tasks/fly' }, -32601],
  ['without an ID, with invalid params', { method: 'message/send', params: {} }, -32602],
  ['with a null ID, for an unknown task', { id: null, method: 'tasks/get', params: { id: unknown } }, -32001],
  ['with an object as method', { id: 1, method: { method: 'tasks/get' } }, -32601],
  ["for a method of Parley's own dialect", { id: 1, method: 'tasks/list' }, -32601],
])('a request of A2A 0.3 %s is answered with status 200 and the code', async (_, body, code) => {
  const { status, json } = await post(body)
  expect([status, json.error.code]).toEqual([200, code])
  expect(json.id).toBe(typeof Reflect.get(body, 'id') === 'number' ? 1 : null)
})

test("requests of Parley's own dialect require an ID", async () => {
  const { status, json } = await post({ method: 'tasks/fly' }, '/')
  expect([status, json.error.code]).toEqual([400, -32600])
})

test('a stream of A2A 0.3 that cannot start consists of the error', async () => {
  const answer = await post({ id: 7, method: 'tasks/resubscribe', params: { id: unknown } })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toContain('text/event-stream')
  const [, data = ''] = /^data: (.*)\n\n$/.exec(answer.text) ?? []
  expect(JSON.parse(data)).toMatchObject({ jsonrpc: '2.0', id: 7, error: { code: -32001 } })
})

test.each(['', '/', '/.well-known/agent-card.json', '/.well-known/agent.json'])(
  'GET /a2a/v0.3%s returns the card of A2A 0.3 without credentials',
  async (path) => {
    const answer = await fetch(`${agent.url}/a2a/v0.3${path}`)
    const card = await answer.json()
    expect(answer.status).toBe(200)
    expect(card).toMatchObject({ protocolVersion: '0.3.0', url: `${agent.url}/a2a/v0.3` })
    expect(card).not.toHaveProperty('supportedInterfaces')
  },
)

test('the extended card is at /a2a/v0.3/v1/card, for callers with a token', async () => {
  await using other = await testAgent({
    handle: () => '',
    extendedCard: { iconUrl: 'https://a.example/i.png' },
  })
  const at = `${other.url}/a2a/v0.3/v1/card`
  const anonymous = await fetch(at)
  expect(anonymous.status).toBe(401)
  expect(anonymous.headers.get('www-authenticate')).toMatch(/^Bearer/)
  expect(await anonymous.json()).toMatchObject({ code: -32000 })
  const answer = await fetch(at, { headers: { authorization: `Bearer ${other.caller('alice').token}` } })
  expect(answer.status).toBe(200)
  expect(await answer.json()).toMatchObject({
    protocolVersion: '0.3.0',
    supportsAuthenticatedExtendedCard: true,
    iconUrl: 'https://a.example/i.png',
  })
  const none = await fetch(`${agent.url}/a2a/v0.3/v1/card`, { headers: { authorization: `Bearer ${token}` } })
  expect(await none.json()).toMatchObject({ code: -32007 })
})
