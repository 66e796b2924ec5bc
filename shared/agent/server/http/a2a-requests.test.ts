import { randomUUID } from 'node:crypto'
import type { InProcessEventBus } from '@parley/engine/events/in-process'
import { price } from '@parley/tools/testing/paid-agent'
import { raw } from '@parley/tools/testing/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

const lines: string[] = []
let agent: TestAgent
let token: string
beforeAll(async () => {
  agent = await testAgent(
    { handle: ({ ask }) => ask('what?'), extendedCard: { description: 'more' } },
    {
      env: { LOG_LEVEL: 'info', WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' },
      logTo: { write: (line: string) => void lines.push(line) },
    },
  )
  token = agent.caller('alice').token
})
afterAll(() => agent[Symbol.asyncDispose]())

const json = { 'content-type': 'application/json' }
const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
const rest = (path: string, body: object, more: object = {}) =>
  raw(agent, { path, token, headers: json, body: JSON.stringify(body), ...more })
const rpc = (method: string, params: unknown, path = '/a2a/v1') =>
  rest(path, { jsonrpc: '2.0', id: 1, method, params })
const newTask = async (): Promise<string> => {
  const { json: answer } = await rest('/message:send', { message: { ...message, messageId: randomUUID() } })
  return answer.task.id
}

test('metrics and the audit log name the method of a REST call', async () => {
  const reader = agent.caller('reader', 'agent:read').token
  lines.length = 0
  expect((await rest('/a2a/v1/message:send', { message }, { token: reader })).status).toBe(403)
  expect(lines.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ who: 'reader', action: 'SendMessage', allowed: false }),
  )
  await raw(agent, { method: 'GET', path: '/tasks', token })
  const metrics = await (await fetch(`${agent.url}/metrics`)).text()
  expect(metrics).toMatch(
    /http_requests_total\{method="GET",endpoint="\/tasks",status="200",rpc_method="ListTasks"\} 1/,
  )
})

test('a request over the limit is refused in the form of its dialect before authentication', async () => {
  await using limited = await testAgent({ handle: () => 'done' }, { env: { RATE_LIMIT_PER_MINUTE: '1' } })
  const paths = ['/tasks', '/a2a/v1/tasks', '/a2a/v1', '/a2a/v0.3', '/']
  const answers = []
  for (const path of ['/', ...paths])
    answers.push(await raw(limited, { method: path.endsWith('tasks') ? 'GET' : 'POST', path }))
  expect(
    answers.slice(1).map(({ status, json: { jsonrpc, error } }) => [status, jsonrpc, error.code]),
  ).toEqual([
    [429, undefined, 429],
    [429, undefined, 429],
    [429, '2.0', -32041],
    [429, '2.0', -32041],
    [429, '2.0', -32041],
  ])
})

test('a client that disconnects from a subscription to a paused task leaves no listener', async () => {
  const id = await newTask()
  const bus = agent.app.services.bus as InProcessEventBus
  const before = bus.topics
  const client = new AbortController()
  const headers = { authorization: `Bearer ${token}` }
  const url = `${agent.url}/a2a/v1/tasks/${id}:subscribe`
  const stream = await fetch(url, { headers, signal: client.signal })
  const reader = stream.body?.getReader()
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toContain(id)
  expect(bus.topics).toBe(before + 1)
  client.abort()
  await expect.poll(() => bus.topics).toBe(before)
})

test('a webhook whose ID has a slash can be read and deleted, with the slash encoded or not', async () => {
  const id = await newTask()
  const base = `/tasks/${id}/pushNotificationConfigs`
  for (const path of [`${base}/a/b`, `${base}/a%2Fb`]) {
    const created = await rest(base, { id: 'a/b', url: 'http://127.0.0.1:1/' })
    expect(created.json).toMatchObject({ taskId: id, id: 'a/b' })
    expect((await raw(agent, { method: 'GET', path, token })).json).toMatchObject({ id: 'a/b' })
    const deleted = await raw(agent, { method: 'DELETE', path, token })
    expect([deleted.status, deleted.json]).toEqual([200, {}])
    expect((await raw(agent, { method: 'GET', path, token })).status).toBe(404)
  }
})

test.each([
  ['GetExtendedAgentCard', '/a2a/v1'],
  ['agent/getAuthenticatedExtendedCard', '/a2a/v0.3'],
])('%s returns the card with the author’s additions', async (method, path) => {
  expect((await rpc(method, {}, path)).json.result).toMatchObject({ description: 'more' })
  const card = await raw(agent, { method: 'GET', path: '/extendedAgentCard', token })
  expect(card.json).toMatchObject({ description: 'more', capabilities: { extendedAgentCard: true } })
})

test.each([
  ['/a2a/v1', 'GetTask', 'a2a-extensions', 'a2a-extensions'],
  ['/a2a/v1', 'GetTask', 'x-a2a-extensions', 'a2a-extensions'],
  ['/a2a/v0.3', 'tasks/get', 'x-a2a-extensions', 'x-a2a-extensions'],
  ['/a2a/v0.3', 'tasks/get', 'a2a-extensions', 'x-a2a-extensions'],
])(
  'answers at %s to %s repeat the extensions that %s activates and the card lists, in %s',
  async (path, method, sent, header) => {
    const id = await newTask()
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { id } })
    const call = (given: string) => raw(agent, { path, token, body, headers: { ...json, [sent]: given } })
    const known = 'urn:parley:a2a:negotiation:v1'
    const { headers } = await call(`https://unknown.example, ${known},${agent.did}`)
    expect(headers.get(header)).toBe(`${known}, ${agent.did}`)
    expect((await call('https://unknown.example')).headers.get(header)).toBeNull()
  },
)

test('an agent without an extended card does not declare one and refuses the call', async () => {
  await using plain = await testAgent({ handle: () => 'done' })
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'GetExtendedAgentCard' })
  const asked = { token: plain.caller('alice').token, headers: json, body }
  expect((await raw(plain, { path: '/a2a/v1', ...asked })).json.error.code).toBe(-32004)
  const card = await raw(plain, { method: 'GET', path: '/a2a/v1/.well-known/agent-card.json' })
  expect(card.json.capabilities.extendedAgentCard).toBe(false)
})

test.each<[string, unknown]>([
  ['both spellings of a field', { ...message, taskId: 'a', task_id: 'b' }],
  ['a number as text', { ...message, messageId: 7 }],
  ['an enum of a later version', { ...message, role: 'ROLE_OBSERVER' }],
  ['an unknown number of an enum', { ...message, role: 99 }],
  ['a part with two contents', { ...message, parts: [{ text: 'a', url: 'https://e' }] }],
  ['a part without content', { ...message, parts: [{ metadata: {} }] }],
  ['bytes that are not base64', { ...message, parts: [{ raw: '*' }] }],
  ['an ID that is too long', { ...message, messageId: 'x'.repeat(257) }],
  ['a list as message', [message]],
])('a message with %s is refused by JSON-RPC and REST', async (_, given) => {
  const { status, json: answer } = await rpc('SendMessage', { message: given })
  expect([status, answer.error.code]).toEqual([200, -32602])
  const refused = await rest('/message:send', { message: given })
  expect([refused.status, refused.json.error.status]).toEqual([400, 'INVALID_ARGUMENT'])
})

test.each([
  ['{"message":', 400],
  ['[]', 400],
  ['"text"', 400],
  ['', 400],
])('a REST call with the body %j receives %i', async (body, status) => {
  const answer = await raw(agent, { path: '/message:send', token, headers: json, body })
  expect([answer.status, answer.json.error.code]).toEqual([status, status])
})

test('an unpaid message becomes a task in every binding, also in streams, and its answer has the terms in a header', async () => {
  await using paid = await testAgent({ handle: () => 'done', executionCost: price })
  const caller = { token: paid.caller('alice').token, headers: json }
  const params = { message: { ...message, role: 'user', parts: [{ kind: 'text', text: 'hello' }] } }
  const rpcOf = (method: string, given: object) => ({ jsonrpc: '2.0', id: 1, method, params: given })
  const calls = [
    { path: '/a2a/v1', body: rpcOf('SendMessage', { message }) },
    { path: '/a2a/v1', body: rpcOf('SendStreamingMessage', { message }) },
    { path: '/a2a/v0.3', body: rpcOf('message/send', params) },
    { path: '/a2a/v0.3', body: rpcOf('message/stream', params) },
    { path: '/message:send', body: { message } },
    { path: '/message:stream', body: { message } },
  ]
  for (const { path, body } of calls) {
    const answer = await raw(paid, { ...caller, path, body: JSON.stringify(body) })
    expect(answer.status).toBe(200)
    expect(answer.text).toMatch(/TASK_STATE_INPUT_REQUIRED|input-required/)
    expect(answer.text).toContain('"x402.payment.required":{"x402Version":1')
    expect(answer.headers.get('payment-required')).toBeTruthy()
  }
})
