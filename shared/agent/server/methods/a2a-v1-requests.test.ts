import { raw } from '@parley/tools/testing/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

let agent: TestAgent
let token: string
beforeAll(async () => {
  agent = await testAgent({
    async *handle({ text, reply }) {
      if (text === 'greet') {
        yield reply('hello')
        return
      }
      yield 'one '
      yield 'two'
    },
  })
  token = agent.caller('alice').token
})
afterAll(() => agent[Symbol.asyncDispose]())

interface Options {
  path?: string
  id?: string | number
  headers?: Record<string, string>
}

const post = (method: string, params: object, { path = '/a2a/v1', id = 7, headers = {} }: Options = {}) =>
  raw(agent, {
    path,
    token,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
  })
const call = async (method: string, params: object, options?: Options) => {
  const { status, json } = await post(method, params, options)
  expect(status).toBe(200)
  return json.result ?? json.error
}
const message = (fields: object = {}) => ({
  message: {
    messageId: 'msg/1\u0007',
    contextId: '<a>:<b>',
    role: 'ROLE_USER',
    parts: [{ text: 'count' }],
    ...fields,
  },
})

test('SendMessage answers with the ended task and the IDs of the client, at its path and at the root', async () => {
  for (const path of ['/a2a/v1', '/a2a/v1/', '/']) {
    const { task } = await call('SendMessage', message(), { path })
    expect(task).toMatchObject({
      contextId: '<a>:<b>',
      status: { state: 'TASK_STATE_COMPLETED', timestamp: expect.stringMatching(/\.\d{3}Z$/) },
      artifacts: [{ parts: [{ text: 'one two' }] }],
      history: [{ messageId: 'msg/1\u0007', role: 'ROLE_USER' }, { role: 'ROLE_AGENT' }],
    })
    expect(task).not.toHaveProperty('kind')
  }
})

test('the same task has UUIDs for its clients of the other dialects, and its context keeps the name', async () => {
  const { task } = await call('SendMessage', message())
  const own = await agent.caller('alice').get(task.id)
  expect(own.context_id).toMatch(/^[\da-f]{8}-[\da-f]{4}-8/)
  expect(own.history[0]?.context_id).toBe(own.context_id)
  const next = await call('SendMessage', message({ contextId: own.context_id }))
  expect(next.task.contextId).toBe('<a>:<b>')
  expect((await agent.caller('alice').get(next.task.id)).context_id).toBe(own.context_id)
})

test('SendMessage returns the stored task with returnImmediately, and a message from an agent that replies', async () => {
  const configuration = { returnImmediately: true, historyLength: 0 }
  const { task } = await call('SendMessage', { ...message(), configuration })
  expect(task.status.state).toMatch(/SUBMITTED|WORKING/)
  expect(task).not.toHaveProperty('history')
  const answer = await call('SendMessage', message({ parts: [{ text: 'greet' }] }))
  expect(Object.keys(answer)).toEqual(['message'])
  expect(answer.message).toMatchObject({
    role: 'ROLE_AGENT',
    contextId: '<a>:<b>',
    parts: [{ text: 'hello' }],
  })
})

test('a stream begins with the task, repeats the request ID with its type, and ends with the task', async () => {
  for (const id of [7, '7']) {
    const answer = await post('SendStreamingMessage', message(), { id })
    expect(answer.headers.get('content-type')).toContain('text/event-stream')
    const frames = [...answer.text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
    expect(frames.every((frame) => frame.id === id && frame.jsonrpc === '2.0')).toBe(true)
    const results = frames.map(({ result }) => result)
    expect(results[0]).toHaveProperty('task.contextId', '<a>:<b>')
    expect(results.at(-1)).toHaveProperty('statusUpdate.status.state', 'TASK_STATE_COMPLETED')
    const updates = results.flatMap(({ artifactUpdate }) => artifactUpdate ?? [])
    expect(updates.at(-1)).toMatchObject({
      append: false,
      lastChunk: true,
      artifact: { parts: [{ text: 'one two' }] },
    })
  }
})

test('SubscribeToTask of an ended task is an error without a stream', async () => {
  const { task } = await call('SendMessage', message())
  const answer = await post('SubscribeToTask', { id: task.id })
  expect(answer.headers.get('content-type')).toContain('application/json')
  expect(answer.json.error).toMatchObject({ code: -32004, data: [{ reason: 'UNSUPPORTED_OPERATION' }] })
})

test('a webhook keeps the ID and the credentials of the client, and deleting it twice is a success', async () => {
  const { task } = await call('SendMessage', message())
  const config = {
    taskId: task.id,
    id: 'hook/1',
    url: 'https://example.com/hook',
    token: 't',
    authentication: { scheme: 'Bearer', credentials: 'secret' },
  }
  const named = { taskId: task.id, id: 'hook/1' }
  expect(await call('CreateTaskPushNotificationConfig', config)).toEqual(config)
  expect(await call('GetTaskPushNotificationConfig', named)).toEqual(config)
  expect(await call('ListTaskPushNotificationConfigs', { taskId: task.id })).toEqual({ configs: [config] })
  expect(await call('DeleteTaskPushNotificationConfig', named)).toEqual({})
  expect(await call('DeleteTaskPushNotificationConfig', named)).toEqual({})
  const { url } = config
  const made = await call('CreateTaskPushNotificationConfig', { taskId: task.id, url })
  expect(made).toEqual({ taskId: task.id, id: expect.stringMatching(/^[\da-f-]{36}$/), url })
})

test.each<[string, object, number, string]>([
  ['GetTask', { id: 'unknown' }, -32001, 'TASK_NOT_FOUND'],
  ['SendMessage', message({ taskId: 'c1f3c8f2-0000-4000-8000-000000000000' }), -32001, 'TASK_NOT_FOUND'],
])('%s of an unknown task is %j with the status 200', async (method, params, code, reason) => {
  expect(await call(method, params)).toMatchObject({ code, data: [{ reason, domain: 'a2a-protocol.org' }] })
})

test('a message to an ended task is -32004, and invalid params name the field', async () => {
  const { task } = await call('SendMessage', message())
  expect(await call('SendMessage', message({ taskId: task.id }))).toMatchObject({ code: -32004 })
  expect(await call('GetTask', { id: task.id, historyLength: -1 })).toMatchObject({
    code: -32602,
    data: [{ fieldViolations: [{ field: 'historyLength' }] }],
  })
  expect(await call('tasks/list', {})).toMatchObject({ code: -32601 })
})

test('a call without a token is refused with 401 and -32000', async () => {
  for (const path of ['/a2a/v1', '/']) {
    const answer = await raw(agent, {
      path,
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params: {} }),
    })
    expect([answer.status, answer.json.error.code]).toEqual([401, -32000])
    expect(answer.headers.get('www-authenticate')).toContain('Bearer')
  }
})
