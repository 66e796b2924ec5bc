import { randomUUID } from 'node:crypto'
import { makeDid } from '@parley/kit/did/did'
import { keyPairFromSeed } from '@parley/kit/did/keys'
import { signRequest } from '@parley/kit/did/signature'
import { raw } from '@parley/tools/testing/raw-http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

let agent: TestAgent
let token: string
beforeAll(async () => {
  agent = await testAgent(
    {
      handle: async ({ text, ask, reply, history, signal }) => {
        if (text === 'ask' && history.length === 1) return ask('what?')
        if (text === 'reply') return reply('a message')
        if (text === 'hang') await new Promise((resolve) => signal.addEventListener('abort', resolve))
        if (text === 'large') return 'x'.repeat(3_000_000)
        return `done: ${text}`
      },
    },
    { env: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' } },
  )
  token = agent.caller('alice').token
})
afterAll(() => agent[Symbol.asyncDispose]())

const json = { 'content-type': 'application/json' }

interface Call {
  token?: string | undefined
  headers?: Record<string, string>
  id?: unknown
}

/** One way to call the agent over HTTP. Params are those of A2A 1.0 or 0.3. */
interface Binding {
  send(params: object, call?: Call): Promise<Result>
  stream(params: object, call?: Call): Promise<Result>
  get(id: string, historyLength?: number, call?: Call): Promise<Result>
  cancel(id: string): Promise<Result>
  subscribe(id: string): Promise<Result>
  /** Wraps a text as the message, with the option that decides whether the call waits. */
  params(
    text: string,
    given?: { taskId?: string; contextId?: string; waits?: boolean; messageId?: string },
  ): object
}

interface Result {
  status: number
  headers: Headers
  /** The result, or the error. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever came
  value: any
  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  frames: any[]
}

const framesOf = (text: string) =>
  text
    .split('\n\n')
    .map((frame) => /^data: (.*)$/m.exec(frame)?.[1])
    .filter((data) => data !== undefined)
    .map((data) => JSON.parse(data))

function rpcAt(path: string, methods: Record<'send' | 'stream' | 'get' | 'cancel' | 'subscribe', string>) {
  const call = async (method: string, params: object, { id = 1, ...given }: Call = {}): Promise<Result> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params })
    const headers = { ...json, ...given.headers }
    const answer = await raw(agent, { path, token: 'token' in given ? given.token : token, headers, body })
    const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') === true
    const frames = isStream ? framesOf(answer.text) : []
    for (const frame of [...frames, ...(isStream ? [] : [answer.json])])
      expect(frame).toMatchObject({ jsonrpc: '2.0', id })
    return {
      ...answer,
      value: answer.json?.result ?? answer.json?.error,
      frames: frames.map((frame) => frame.result ?? frame.error),
    }
  }
  return {
    send: (params: object, given?: Call) => call(methods.send, params, given),
    stream: (params: object, given?: Call) => call(methods.stream, params, given),
    get: (id: string, historyLength?: number, given?: Call) =>
      call(methods.get, { id, historyLength }, given),
    cancel: (id: string) => call(methods.cancel, { id }),
    subscribe: (id: string) => call(methods.subscribe, { id }),
  }
}

type Given = Parameters<Binding['params']>[1]

const paramsOf1 = (text: string, { waits = true, messageId = randomUUID(), ...ids }: Given = {}) => ({
  message: { messageId, role: 'ROLE_USER', parts: [{ text }], ...ids },
  configuration: { returnImmediately: !waits },
})
const paramsOf03 = (text: string, { waits = true, messageId = randomUUID(), ...ids }: Given = {}) => ({
  message: { messageId, role: 'user', kind: 'message', parts: [{ kind: 'text', text }], ...ids },
  configuration: { blocking: waits },
})

const names1 = {
  send: 'SendMessage',
  stream: 'SendStreamingMessage',
  get: 'GetTask',
  cancel: 'CancelTask',
  subscribe: 'SubscribeToTask',
}
const names03 = {
  send: 'message/send',
  stream: 'message/stream',
  get: 'tasks/get',
  cancel: 'tasks/cancel',
  subscribe: 'tasks/resubscribe',
}

function restAt(base: string): Binding {
  const call = async (method: string, path: string, body?: object, given: Call = {}): Promise<Result> => {
    const answer = await raw(agent, {
      method,
      path: base + path,
      token: 'token' in given ? given.token : token,
      headers: { ...(body && { 'content-type': 'application/a2a+json' }), ...given.headers },
      ...(body && { body: JSON.stringify(body) }),
    })
    const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') === true
    return {
      ...answer,
      value: answer.json?.error ?? answer.json,
      frames: isStream ? framesOf(answer.text) : [],
    }
  }
  return {
    params: paramsOf1,
    send: (params, given) => call('POST', '/message:send', params, given),
    stream: (params, given) => call('POST', '/message:stream', params, given),
    get: (id, historyLength, given) =>
      call(
        'GET',
        `/tasks/${id}${historyLength === undefined ? '' : `?historyLength=${historyLength}`}`,
        undefined,
        given,
      ),
    cancel: (id) => call('POST', `/tasks/${id}:cancel`),
    subscribe: (id) => call('GET', `/tasks/${id}:subscribe`),
  }
}

const bindings: [string, 'rpc' | 'rest', '1.0' | '0.3', Binding][] = [
  ['JSON-RPC of 1.0', 'rpc', '1.0', { ...rpcAt('/a2a/v1', names1), params: paramsOf1 }],
  ['JSON-RPC of 1.0 with a final slash', 'rpc', '1.0', { ...rpcAt('/a2a/v1/', names1), params: paramsOf1 }],
  ['JSON-RPC of 1.0 at the root', 'rpc', '1.0', { ...rpcAt('/', names1), params: paramsOf1 }],
  ['REST of 1.0', 'rest', '1.0', restAt('/a2a/v1')],
  ['REST of 1.0 at the root', 'rest', '1.0', restAt('')],
  ['REST of 1.0 with a tenant', 'rest', '1.0', restAt('/a2a/v1/anyone')],
  ['JSON-RPC of 0.3', 'rpc', '0.3', { ...rpcAt('/a2a/v0.3', names03), params: paramsOf03 }],
  [
    'JSON-RPC of 0.3 with a final slash',
    'rpc',
    '0.3',
    { ...rpcAt('/a2a/v0.3/', names03), params: paramsOf03 },
  ],
]
const [rpc1, , , rest1, , , rpc03] = bindings.map(([, , , binding]) => binding)
if (rpc1 === undefined || rest1 === undefined || rpc03 === undefined) throw new Error('a binding is missing')

const states = {
  completed: 'TASK_STATE_COMPLETED',
  'input-required': 'TASK_STATE_INPUT_REQUIRED',
  canceled: 'TASK_STATE_CANCELED',
}

describe.each(bindings)('%s', (_, kind, version, binding) => {
  const params: Binding['params'] = (...given) => binding.params(...given)
  const taskIn = (value: { task?: object }) => (version === '1.0' ? value.task : value)
  const stateOf = (state: keyof typeof states) => (version === '1.0' ? states[state] : state)
  const code = (rpcCode: number, status: number) => (kind === 'rpc' ? rpcCode : status)
  const statusOf = (status: number) => (kind === 'rpc' ? 200 : status)

  test('a send waits for the ended task, and the task can be read', async () => {
    const sent = await binding.send(params('hello'))
    expect(sent.status).toBe(200)
    const task = taskIn(sent.value)
    expect(task).toMatchObject({
      status: { state: stateOf('completed') },
      artifacts: [{ parts: [{ text: 'done: hello' }] }],
    })
    const type = kind === 'rest' ? 'application/a2a+json' : 'application/json'
    expect(sent.headers.get('content-type')).toContain(type)
    const { id } = task as { id: string }
    const read = await binding.get(id)
    expect(read.value).toMatchObject({ id, history: [{}, {}] })
    expect((await binding.get(id, 1)).value.history).toHaveLength(1)
    expect((await binding.get(id, 0)).value.history ?? []).toHaveLength(0)
  })

  test('a send that does not wait returns the running task, which can be canceled', async () => {
    const sent = await binding.send(params('hang', { waits: false }))
    const { id } = taskIn(sent.value) as { id: string }
    expect((await binding.cancel(id)).value).toMatchObject({ id, status: { state: stateOf('canceled') } })
    const again = await binding.cancel(id)
    expect([again.status, again.value.code]).toEqual([statusOf(400), code(-32002, 400)])
  })

  test('a stream begins with the task and ends with the task', async () => {
    const { frames, headers } = await binding.stream(params('hello'))
    expect(headers.get('content-type')).toContain('text/event-stream')
    expect(taskIn(frames[0])).toHaveProperty('id')
    const last = version === '1.0' ? frames.at(-1).statusUpdate : frames.at(-1)
    expect(last).toMatchObject({ status: { state: stateOf('completed') } })
    expect(last.final).toBe(version === '1.0' ? undefined : true)
  })

  test('a stream ends when the task pauses, and the next message continues the task', async () => {
    const { frames } = await binding.stream(params('ask'))
    const last = version === '1.0' ? frames.at(-1).statusUpdate : frames.at(-1)
    expect(last).toMatchObject({ status: { state: stateOf('input-required') } })
    const next = await binding.send(params('this', { taskId: last.taskId }))
    expect(taskIn(next.value)).toMatchObject({
      id: last.taskId,
      contextId: last.contextId,
      status: { state: stateOf('completed') },
    })
  })

  test('an agent that answers with a message is answered by the message instead of the task', async () => {
    const { value } = await binding.send(params('reply'))
    expect(version === '1.0' ? value.message : value).toMatchObject({ parts: [{ text: 'a message' }] })
    expect(value).not.toHaveProperty('task')
  })

  test('a stream of an ended task is refused in 1.0 before it begins', async () => {
    const { id } = taskIn((await binding.send(params('hello'))).value) as { id: string }
    const { frames, status, value } = await binding.subscribe(id)
    const answered =
      version === '1.0' ? [status, value.code, frames] : [status, frames[0].id, frames[0].status.state]
    expect(answered).toEqual(
      version === '1.0' ? [statusOf(400), code(-32004, 400), []] : [200, id, 'completed'],
    )
  })

  test('a subscription receives the task and its end', async () => {
    const { id } = taskIn((await binding.send(params('hang', { waits: false }))).value) as { id: string }
    const subscribed = binding.subscribe(id)
    await new Promise((resolve) => setTimeout(resolve, 100))
    await binding.cancel(id)
    const { frames } = await subscribed
    expect(taskIn(frames[0])).toMatchObject({ id })
    const last = version === '1.0' ? frames.at(-1).statusUpdate : frames.at(-1)
    expect(last).toMatchObject({ taskId: id, status: { state: stateOf('canceled') } })
  })

  test('a subscription to a paused task receives its end in 1.0', async () => {
    const { id } = taskIn((await binding.send(params('ask'))).value) as { id: string }
    const subscribed = binding.subscribe(id)
    await new Promise((resolve) => setTimeout(resolve, 200))
    await binding.send(params('this', { taskId: id }))
    const { frames } = await subscribed
    expect(taskIn(frames[0])).toMatchObject({ id, status: { state: stateOf('input-required') } })
    const last = version === '1.0' ? frames.at(-1).statusUpdate : frames.at(-1)
    const state = stateOf(version === '1.0' ? 'completed' : 'input-required')
    expect(last).toMatchObject({ status: { state } })
  })

  test.each(['not-a-task', randomUUID()])('task %s is unknown', async (id) => {
    const { status, value } = await binding.get(id)
    expect([status, value.code]).toEqual([statusOf(404), code(-32001, 404)])
    const sent = await binding.send(params('hello', { taskId: id }))
    expect([sent.status, sent.value.code]).toEqual([statusOf(404), code(-32001, 404)])
  })

  test('IDs of a client with slashes and control characters are returned unchanged', async () => {
    const ids = { contextId: 'a/b\u0001\n"\u2028', messageId: '../m\u0000' }
    const { value } = await binding.send(params('hello', ids))
    expect(taskIn(value)).toMatchObject({
      contextId: ids.contextId,
      history: [{ messageId: ids.messageId }, {}],
    })
  })

  test('without a token, a call receives 401 with WWW-Authenticate in the form of the dialect', async () => {
    const { status, headers, value } = await binding.send(params('hello'), {
      token: undefined,
      headers: { 'a2a-version': version },
    })
    expect([status, value.code]).toEqual([401, code(-32000, 401)])
    expect(headers.get('www-authenticate')).toMatch(/^Bearer/)
  })

  test('a token without the scope receives 403', async () => {
    const reader = agent.caller('alice', 'agent:read').token
    const { status, value } = await binding.send(params('hello'), { token: reader })
    expect([status, value.code]).toEqual([403, code(-32013, 403)])
  })

  test('the task of another client is unknown', async () => {
    const { id } = taskIn((await binding.send(params('hello'))).value) as { id: string }
    const { value } = await binding.get(id, undefined, { token: agent.caller('bob').token })
    expect(value.code).toBe(code(-32001, 404))
  })

  test('an unknown version is refused', async () => {
    const { status, value } = await binding.send(params('hello'), { headers: { 'a2a-version': '9.9' } })
    expect([status, value.code]).toEqual([statusOf(400), code(-32009, 400)])
  })

  test('invalid params are refused with the fields', async () => {
    const { status, value } = await binding.send({ message: { role: 'nobody', parts: 'x' } })
    expect([status, value.code]).toEqual([statusOf(400), code(-32602, 400)])
    expect(JSON.stringify(value)).toContain('message.parts')
  })

  test('a message with 10,000 parts is refused', async () => {
    const given = params('x') as { message: { parts: object[] } }
    given.message.parts = Array.from({ length: 10_000 }, () => ({ ...given.message.parts[0] }))
    const { status, value } = await binding.send(given)
    expect([status, value.code]).toEqual([statusOf(400), code(-32602, 400)])
  })

  test('a large artifact is returned whole', async () => {
    const { value } = await binding.send(params('large'))
    const { id } = taskIn(value) as { id: string }
    const read = await binding.get(id)
    expect(read.value.artifacts[0].parts[0].text).toHaveLength(3_000_000)
  })
})

test.each([
  ['application/json', 'application/json'],
  ['application/a2a+json', 'application/a2a+json'],
])('a REST client that sends %s receives %s', async (type, answered) => {
  const body = JSON.stringify(paramsOf1('hello'))
  const { headers } = await raw(agent, {
    path: '/message:send',
    token,
    headers: { 'content-type': type },
    body,
  })
  expect(headers.get('content-type')).toContain(answered)
})

const key = keyPairFromSeed(Buffer.alloc(32, 1))
const did = makeDid({ author: 'alice', name: 'agent', publicKey: key.publicKey })

test.each([
  ['POST', '/a2a/v1', 200],
  ['POST', '/message:send', 200],
  ['GET', '/tasks/{id}', 200],
  ['POST', '/tasks/{id}:cancel', 403],
  ['DELETE', '/tasks/{id}/pushNotificationConfigs/c', 403],
])('a signed %s %s is answered with %i: signatures do not cover the path', async (method, path, expected) => {
  agent.identityProvider.clients.set(did, { client_id: did, public_key: key.publicKeyBase58 })
  const given = { token: agent.identityProvider.issue(did) }
  const { value } = await rpc1.send(rpc1.params('hang', { waits: false }), given)
  const isRpc = path === '/a2a/v1'
  const call = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: paramsOf1('hello') }
  const body = method === 'POST' ? JSON.stringify(isRpc ? call : call.params) : ''
  const answer = await raw(agent, {
    ...given,
    method,
    path: path.replace('{id}', value.task.id),
    headers: { ...json, ...signRequest({ did, key, body }) },
    ...(body !== '' && { body }),
  })
  expect(answer.status).toBe(expected)
  const refused = { error: { details: [{ metadata: { reason: 'path_not_covered' } }] } }
  expect(answer.json).toMatchObject(expected === 403 ? refused : {})
})

const requestIds = [0, -7, 9_007_199_254_740_991, 'text', '']
test.each(requestIds)('the request ID %j is returned unchanged', async (id) => {
  for (const rpc of [rpc1, rpc03]) {
    // Both check the ID of every answer and frame.
    expect((await rpc.get(randomUUID(), undefined, { id })).value.code).toBe(-32001)
    expect((await rpc.stream(rpc.params('hello'), { id })).frames).not.toEqual([])
  }
})
