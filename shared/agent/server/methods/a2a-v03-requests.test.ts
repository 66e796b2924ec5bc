import { raw } from '@parley/tools/testing/raw-http'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

let agent: TestAgent
let token: string
beforeAll(async () => {
  agent = await testAgent(
    {
      async *handle({ text, ask, reply }) {
        if (text === 'ask') return ask('Which one?')
        if (text === 'greet') return reply('hello')
        yield 'one '
        yield 'two'
        return undefined
      },
    },
    { env: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' } },
  )
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
const call = async (method: string, params: object, path?: string) => {
  const { status, json } = await post({ id: 'r-1', method, params }, path)
  expect([status, json.id]).toEqual([200, 'r-1'])
  return json.result ?? json.error
}
const message = (text: string, fields: object = {}) => ({
  message: {
    kind: 'message',
    role: 'user',
    messageId: 'msg/1\u0007',
    contextId: '<a>:<b>',
    parts: [{ kind: 'text', text }],
    ...fields,
  },
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

test('message/send answers with the ended task and the IDs of the client', async () => {
  for (const path of ['/a2a/v0.3', '/a2a/v0.3/']) {
    const task = await call('message/send', message('count'), path)
    expect(task).toMatchObject({
      kind: 'task',
      contextId: '<a>:<b>',
      status: { state: 'completed' },
      history: [{ messageId: 'msg/1\u0007', role: 'user' }, { role: 'agent' }],
      artifacts: [{ name: 'result', parts: [{ kind: 'text', text: 'one two' }] }],
    })
    expect(await call('tasks/get', { id: task.id })).toEqual(task)
    expect((await call('tasks/get', { id: task.id, historyLength: 1 })).history).toEqual([task.history[1]])
  }
})

test('message/send does not wait if blocking is false', async () => {
  const configuration = { blocking: false }
  const task = await call('message/send', { ...message('count'), configuration })
  expect(task.status.state).toBe('submitted')
})

test('a handler that replies answers with a message', async () => {
  expect(await call('message/send', message('greet'))).toMatchObject({
    kind: 'message',
    role: 'agent',
    contextId: '<a>:<b>',
    parts: [{ kind: 'text', text: 'hello' }],
  })
})

test('a stream begins with the task and ends with a final pause, and the next message continues the task', async () => {
  const { text } = await post({ id: 7, method: 'message/stream', params: message('ask') })
  const frames = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
  expect(frames.map(({ id }) => id)).toEqual([7, 7, 7])
  const [task, , pause] = frames.map(({ result }) => result)
  expect(task).toMatchObject({ kind: 'task', contextId: '<a>:<b>', status: { state: 'submitted' } })
  expect(pause).toMatchObject({ kind: 'status-update', status: { state: 'input-required' }, final: true })
  const next = { taskId: task.id, messageId: 'msg-2' }
  expect(await call('message/send', message('the first', next))).toMatchObject({
    id: task.id,
    status: { state: 'completed' },
  })
  expect(await call('message/send', message('more', next))).toMatchObject({ code: -32004 })
  expect(await call('tasks/cancel', { id: task.id })).toMatchObject({ code: -32002 })
  expect(await call('message/send', message('x', { taskId: 'task-1' }))).toMatchObject({ code: -32001 })
})

test('a webhook receives the task with its token and its credentials', async () => {
  await using receiver = await WebhookReceiver.start()
  const { id } = await call('message/send', message('ask'))
  const authentication = { schemes: ['Basic'], credentials: 'c2VjcmV0' }
  const config = { id: 'my/hook', url: receiver.url, token: 'verify-me', authentication }
  const set = { taskId: id, pushNotificationConfig: config }
  expect(await call('tasks/pushNotificationConfig/set', set)).toEqual(set)
  expect(await call('tasks/pushNotificationConfig/get', { id })).toEqual(set)
  expect(await call('tasks/pushNotificationConfig/list', { id })).toEqual([set])
  await call('message/send', message('go on', { taskId: id, messageId: 'msg-2' }))
  const posts = await receiver.waitFor(3)
  for (const { headers, body } of posts) {
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-a2a-notification-token': 'verify-me',
      authorization: 'Basic c2VjcmV0',
    })
    expect(JSON.parse(body.toString())).toMatchObject({ kind: 'task', id, contextId: '<a>:<b>' })
  }
  const { json } = await post({
    id: 1,
    method: 'tasks/pushNotificationConfig/delete',
    params: { id, pushNotificationConfigId: 'my/hook' },
  })
  expect(json.result).toBeNull()
  expect(await call('tasks/pushNotificationConfig/list', { id })).toEqual([])
})

test('another version is refused at this path, and 0.3 is accepted at the root', async () => {
  const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { id: unknown } })
  const refused = await raw(agent, { path: '/a2a/v0.3', token, headers, body })
  expect([refused.status, refused.json.error.code]).toEqual([200, -32009])
  const other = await raw(agent, { path: '/', token, headers: { ...headers, 'a2a-version': '0.3' }, body })
  expect([other.status, other.json.error.code]).toEqual([200, -32001])
})
