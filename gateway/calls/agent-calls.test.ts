import type http from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { agent, bearer, type Call, call, fail, gateway, gatewayForEachTest } from '../testing.ts'
import { answered, changes, request, saying, testInterface, until } from './testing.ts'

gatewayForEachTest(
  { REGISTRY_ALLOWED_HOSTS: '127.0.0.1', ANSWERS_PER_CALLER_MAX_BYTES: '2500000' },
  { testInterface },
)

const weather = 'Weather forecast for any city'
const at = '2026-11-22T00:00:00.000000+00:00'
const statusOf = (state: string) => ({ state, timestamp: at })
const taskId = '11111111-2222-4333-8444-555555555555'
const contextId = '22222222-2222-4333-8444-555555555555'
const taskIn = (state: string, more: object = {}) => ({
  id: taskId,
  context_id: contextId,
  kind: 'task',
  status: statusOf(state),
  ...more,
})
const ofTask = { task_id: taskId, context_id: contextId, timestamp: at }
const update = (state: string) => ({
  ...ofTask,
  kind: 'status-update',
  status: statusOf(state),
  final: false,
})
const artifact = (text: string, more: object = {}) => ({
  ...ofTask,
  kind: 'artifact-update',
  artifact: { artifact_id: 'one', name: 'answer', parts: [{ kind: 'text', text }] },
  append: false,
  last_chunk: true,
  ...more,
})

/** Sends the frames as an event stream and ends it, or leaves it open. */
function streams({ response }: Call, frames: object[], { leaveOpen = false } = {}): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const frame of frames) response.write(`data: ${JSON.stringify(frame)}\n\n`)
  if (!leaveOpen) response.end()
}

test('a message without an agent is negotiated, and the task has its agent and the decision', async () => {
  await agent('sky', weather)
  await agent('board', 'Plays chess')
  const { json } = await answered({ send: saying('weather forecast') })
  expect(json).toMatchObject({ agent: 'sky', task: { status: { state: 'submitted' } } })
  const decision = await fetch(`${gateway().addresses.public}/negotiations/${json.decisionId}`, {
    headers: { authorization: bearer('alice') },
  })
  expect(decision.status).toBe(200)
})

test('a message to an agent reaches this agent only, with the id and the client of the request', async () => {
  const sky = await agent('sky', weather)
  const board = await agent('board', 'Plays chess')
  const headers = {
    'x-request-id': 'call-1',
    'user-agent': 'test/1',
    traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
  }
  const { json } = await answered({ send: saying('weather forecast', { agent: 'board' }) }, { headers })
  expect(json).toMatchObject({ agent: 'board' })
  expect([sky.calls, board.calls.length]).toEqual([[], 1])
  expect(board.calls[0]?.headers).toMatchObject({
    ...headers,
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-host': new URL(gateway().addresses.public).host,
  })
})

test('the agent waits for the end of the task, so the answer needs one request', async () => {
  const sky = await agent('sky', weather)
  sky.on['message/send'] = async ({ params }) => {
    await pause(50)
    return taskIn('completed', {
      artifacts: [
        {
          artifact_id: 'a',
          name: 'n',
          parts: [{ kind: 'text', text: JSON.stringify(params['configuration']) }],
        },
      ],
    })
  }
  const { json } = await answered({ send: saying('weather forecast'), waitMs: 1234 })
  expect(json.task).toMatchObject({ id: taskId, contextId, status: { state: 'completed' } })
  expect(json.task.artifacts[0].parts[0].text).toBe('{"wait_ms":1234}')
  expect(sky.calls).toHaveLength(1)
})

test('the task of an agent that does not wait is read until it has ended or the time is up', async () => {
  const sky = await agent('sky', weather)
  sky.on['message/send'] = () => taskIn('submitted')
  sky.on['tasks/get'] = () => taskIn(sky.sent('tasks/get').length > 1 ? 'completed' : 'working')
  const ended = await answered({ send: saying('weather forecast'), waitMs: 5000 })
  expect([ended.json.task.status.state, sky.sent('tasks/get').length]).toEqual(['completed', 2])
  sky.on['tasks/get'] = () => taskIn('working')
  const working = await answered({ send: saying('weather forecast'), waitMs: 150 })
  expect(working.json.task.status.state).toBe('working')
})

test.each([undefined, 'sky'])(
  'a message of 1 MB is sent, and a longer one than agents accept is refused (agent: %s)',
  async (name) => {
    const sky = await agent('sky', weather)
    sky.on['message/send'] = () => taskIn('completed')
    const sized = (bytes: number) => saying(`weather forecast ${'x'.repeat(bytes)}`, { agent: name })
    const sent = await answered({ send: sized(1_000_000), waitMs: 1000 })
    expect([sent.status, sent.json.task?.status.state]).toEqual([200, 'completed'])
    const refused = await answered({ send: sized(10_485_500), waitMs: 1000 })
    expect([refused.status, refused.json.error?.code]).toEqual([413, -32600])
    expect(sky.calls).toHaveLength(1)
  },
)

test('the answers of an agent are bounded by the budget of the caller, which the end of the request releases', async () => {
  const sky = await agent('sky', weather)
  const parts = [{ kind: 'text', text: 'x'.repeat(2_000_000) }]
  const large = taskIn('completed', { artifacts: [{ artifact_id: 'a', name: 'n', parts }] })
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  sky.on['tasks/get'] = () => large
  sky.on['message/send'] = async () => {
    if (sky.sent().length > 1) await released
    return large
  }
  const get = () => answered({ get: { taskId, agent: 'sky' } })
  const two = answered({ send: saying('', { agent: 'sky' }), texts: ['one', 'two'] })
  await until(() => sky.sent().length === 2)
  expect((await get()).json.error.data).toEqual({ reason: 'unread_answers' })
  release()
  expect((await two).status).toBe(200)
  expect((await get()).status).toBe(200)
})

test('answers that one request reads at the same time count together for the budget of the caller, until it has failed', async () => {
  const sky = await agent('sky', weather)
  const parts = [{ kind: 'text', text: 'x'.repeat(2_000_000) }]
  const json = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    result: taskIn('completed', { artifacts: [{ artifact_id: 'a', name: 'n', parts }] }),
  })
  const begun: http.ServerResponse[] = []
  // Neither answer ends. The one that begins first grows last, so that it exceeds the budget.
  sky.on['tasks/get'] = ({ response }) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write(json.slice(0, 100))
    begun.push(response)
    const [first, second] = begun
    second?.write(json.slice(100, -100), () => setTimeout(() => first?.write(json.slice(100, -100)), 100))
  }
  const task = { taskId, agent: 'sky' }
  const refused = await answered({ getAll: [task, task] })
  expect([refused.status, refused.json.error?.data]).toEqual([429, { reason: 'unread_answers' }])
  sky.on['tasks/get'] = ({ response }) => response.end(json)
  expect((await answered({ getAll: [task] })).status).toBe(200)
})

test('a repeated message with the same key returns the first task', async () => {
  const sky = await agent('sky', weather)
  for (const send of [
    saying('weather', { idempotencyKey: 'k1' }),
    saying('weather', { agent: 'sky', idempotencyKey: 'k1' }),
  ])
    await answered({ send })
  expect(sky.sent().map(({ headers }) => headers['idempotency-key'])).toEqual(['k1', 'k1'])
})

test('a call fails with the error of the same A2A call', async () => {
  const sky = await agent('sky', weather)
  sky.on['message/send'] = ({ response, id }) => {
    response.setHeader('retry-after', '7')
    fail(response, id, 503, -32042, { reason: 'queue_full' })
  }
  const refused = await answered({ send: saying('weather forecast', { agent: 'sky' }) })
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '7'])
  expect(refused.json.error).toMatchObject({ code: -32042, message: 'no', data: { reason: 'queue_full' } })
  for (const [send, params] of [
    [{ get: { taskId } }, { task_id: taskId }],
    [{ cancel: { taskId } }, { task_id: taskId }],
  ] as const) {
    const method = 'get' in send ? 'tasks/get' : 'tasks/cancel'
    const [ours, theirs] = [await answered(send), await call(method, params)]
    expect([ours.status, ours.json.error]).toEqual([theirs.status, theirs.json.error])
  }
  for (const name of ['unknown', '..', '../sky', 'sky/tasks', '']) {
    const unknown = await answered({ send: saying('weather', { agent: name }) })
    expect([name, unknown.status, unknown.json.error.data]).toEqual([name, 404, { reason: 'agent' }])
  }
})

test('an unpaid message fails with PaymentRequired, the terms of the agent and the header of x402', async () => {
  const sky = await agent('sky', weather)
  const terms = { x402Version: 1, error: 'payment_required', accepts: [{ scheme: 'exact' }] }
  sky.on['message/send'] = ({ response }) => {
    response.writeHead(402, { 'content-type': 'application/json', 'payment-required': 'eyJ4IjoxfQ==' })
    response.end(JSON.stringify(terms))
  }
  const { status, json, headers } = await answered({ send: saying('weather', { agent: 'sky' }) })
  expect([status, json.error.code, headers.get('payment-required')]).toEqual([402, -32046, 'eyJ4IjoxfQ=='])
  expect(json.error.data).toEqual(terms)
})

test('the settlement of a payment is returned with the task', async () => {
  const sky = await agent('sky', weather)
  const receipt = { success: true, transaction: '0x1' }
  sky.on['message/send'] = ({ response }) => {
    response.setHeader('payment-response', Buffer.from(JSON.stringify(receipt)).toString('base64'))
    return taskIn('completed')
  }
  expect((await answered({ send: saying('weather') })).json.receipt).toEqual(receipt)
})

test('an external agent that answers with a message has completed its task', async () => {
  const external = { origin: 'registered', admittedBy: 'operator', card: {} }
  const sky = await agent('sky', weather, external)
  sky.on['message/send'] = () => ({
    kind: 'message',
    role: 'agent',
    message_id: 'm',
    parts: [{ kind: 'text', text: 'Rain' }],
  })
  const { json } = await answered({ send: saying('weather forecast'), waitMs: 1000 })
  expect(json).toMatchObject({
    agent: 'sky',
    task: { answersByMessage: true, status: { state: 'completed', message: { parts: [{ text: 'Rain' }] } } },
  })
  expect(sky.calls).toHaveLength(1)
})

test('a stream begins with the task, its agent and the decision, and ends with the pause of the task', async () => {
  const sky = await agent('sky', weather)
  sky.on['message/stream'] = (one) =>
    streams(one, [
      { ...update('submitted'), sequence: 0 },
      update('working'),
      artifact('Ra', { last_chunk: false }),
      artifact('in', { append: true, last_chunk: false }),
      artifact('Rain'),
      update('input-required'),
      update('completed'),
    ])
  const [first, ...rest] = await changes({ stream: saying('weather forecast') })
  expect(first).toMatchObject({
    kind: 'task',
    agent: 'sky',
    decisionId: /./,
    task: { id: taskId, contextId },
  } as object)
  expect(rest.map((one) => one.status?.state ?? [one.parts[0].text, one.append, one.last])).toEqual([
    'working',
    ['Ra', false, false],
    ['in', true, false],
    ['Rain', false, true],
    'input-required',
  ])
})

test('a stream that is cut continues with the task and its next changes', async () => {
  const sky = await agent('sky', weather)
  sky.on['message/stream'] = (one) => streams(one, [update('working')])
  sky.on['tasks/get'] = () => taskIn('working')
  sky.on['tasks/resubscribe'] = (one) => {
    if (sky.sent('tasks/resubscribe').length === 1) one.response.destroy()
    else streams(one, [update('working'), artifact('Rain'), update('completed')])
  }
  const seen = await changes({ stream: saying('weather forecast') })
  expect(seen.map(({ kind, status }) => status?.state ?? kind)).toEqual([
    'task',
    'task',
    'artifact',
    'completed',
  ])
})

test('an agent that cannot stream receives the message without a stream, and its task is read until it ends', async () => {
  const sky = await agent('sky', weather)
  const refuse = ({ response, id }: Call) => fail(response, id, 400, -32004, {})
  sky.on['message/stream'] = refuse
  sky.on['tasks/resubscribe'] = refuse
  sky.on['message/send'] = () => taskIn('submitted')
  sky.on['tasks/get'] = () => taskIn('completed')
  const seen = await changes({ stream: saying('weather', { agent: 'sky' }) })
  expect(seen.map(({ task }) => task.status.state)).toEqual(['submitted', 'completed'])
})

test('following an ended task returns the task only', async () => {
  const sky = await agent('sky', weather)
  sky.on['tasks/get'] = () => taskIn('completed')
  expect(await changes({ follow: { taskId, agent: 'sky' } })).toMatchObject([
    { kind: 'task', task: { id: taskId } },
  ])
  expect(sky.sent('tasks/resubscribe')).toEqual([])
})

test.each<[string, object, string]>([
  ['waits for a task', { send: saying('weather forecast'), waitMs: 60_000 }, 'message/send'],
  ['reads a stream', { stream: saying('weather forecast') }, 'message/stream'],
])(
  'a client that %s and disconnects closes the connection to the agent and does not cancel the task',
  async (_what, sent, method) => {
    const sky = await agent('sky', weather)
    let closed = false
    sky.on[method] = (one) => {
      one.response.once('close', () => (closed = true))
      if (method === 'message/stream') streams(one, [update('working')], { leaveOpen: true })
      return new Promise(() => {})
    }
    const client = new AbortController()
    const response = request(sent, { signal: client.signal }).catch(() => undefined)
    await until(() => sky.sent(method).length === 1)
    client.abort()
    await response
    await until(() => closed)
    expect(sky.sent('tasks/cancel')).toEqual([])
  },
)

test.each([['{"jsonrpc":"2.0","id":1,"result":{"id":5}}'], ['no JSON'], ['{"jsonrpc":"2.0","id":1}']])(
  'the answer %s of an agent is an error of the agent',
  async (body) => {
    const sky = await agent('sky', weather)
    sky.on['message/send'] = ({ response }) => void response.end(body)
    const { status, json } = await answered({ send: saying('weather', { agent: 'sky' }) })
    expect([status, json.error.code]).toEqual([500, -32006])
  },
)
