import type http from 'node:http'
import { expect, test } from 'vitest'
import { agent, bearer, call, fail, gateway, gatewayForEachTest, post, restart, saying } from './testing.ts'

gatewayForEachTest()

const weather = 'Weather forecast for any city'
const chess = 'Plays chess, suggests the best move'

test('a message goes unmodified to the agent that matches, and its task is found there afterwards', async () => {
  const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
  const body = `{"id": 7,  "jsonrpc":"2.0","method":"message/send","params":${JSON.stringify(saying('weather forecast for Paris ☂'))}}  `
  const sent = await post('/', body, { 'x-did-timestamp': '1' })
  // Either all three headers or none are required; the gateway checks them as an agent does.
  expect(sent.status).toBe(403)
  const taken = await post('/', body)
  expect(taken.status).toBe(200)
  expect(taken.headers.get('x-agent')).toBe('sky')
  expect(taken.headers.get('x-negotiation-id')).toMatch(/^[\da-f]{32}$/)
  expect(sky.calls.map((one) => one.body)).toEqual([body])
  expect(board.calls).toEqual([])
  const got = await call('tasks/get', { task_id: taken.json.result.id })
  expect(got.json.result.id).toBe(taken.json.result.id)
  expect(got.headers.get('x-agent')).toBe('sky')
  expect(board.calls).toEqual([])
})

test('a decision can be read only by its caller, even after a restart', async () => {
  const sky = await agent('sky', weather)
  await agent('board', chess, { admitted: false })
  const taken = await call('message/send', saying('weather forecast'))
  const id = taken.headers.get('x-negotiation-id')
  const read = async (client?: string) => {
    const headers: Record<string, string> = client === undefined ? {} : { authorization: bearer(client) }
    const response = await fetch(`${gateway().addresses.public}/negotiations/${id}`, { headers })
    return { status: response.status, json: (await response.json()) as Record<string, unknown> }
  }
  const record = {
    negotiation_id: id,
    method: 'message/send',
    chosen: 'sky',
    can_handle: true,
    agent: { slug: 'sky' },
    tried: [{ agent: 'sky', outcome: 'answered' }],
    excluded: [{ agent: 'board', rule: 'not admitted' }],
    asked: { weights: { skill_match: 0.55 } },
  }
  expect(await read('alice')).toMatchObject({ status: 200, json: record })
  expect((await read('alice')).json['candidates']).toHaveLength(1)
  expect(await read('bob')).toMatchObject({
    status: 404,
    json: { error: { data: { reason: 'negotiation' } } },
  })
  expect((await read()).status).toBe(404)
  expect(JSON.stringify((await read('alice')).json['asked'])).not.toContain('forecast')
  await restart()
  await sky.register('sky', weather)
  expect(await read('alice')).toMatchObject({ status: 200, json: record })
  const got = await call('tasks/get', { task_id: taken.json.result.id })
  expect([got.status, got.headers.get('x-agent'), sky.sent('tasks/get').length]).toEqual([200, 'sky', 1])
})

test('a task that no agent can handle is rejected with the best candidates and their reasons', async () => {
  await agent('sky', weather)
  const refused = await call('message/send', saying('zzqx brrrgl'))
  expect(refused.status).toBe(400)
  expect(refused.json).toMatchObject({
    id: 'one',
    error: {
      code: -32004,
      data: { reason: 'no_agent', candidates: [{ agent: { slug: 'sky' }, can_handle: false }] },
    },
  })
  expect(refused.json.error.data.candidates[0].rejection_reason).toEqual(expect.any(String))
  expect(refused.headers.get('x-negotiation-id')).toBe(refused.json.error.data.negotiation_id)
})

test.each<[string, object[]]>([
  ['an empty text', [{ kind: 'text', text: ' ' }]],
  ['data alone', [{ kind: 'data', data: { city: 'Paris' } }]],
])('a message with %s matches no agent by words that the message does not contain', async (_what, parts) => {
  const reader = await agent('reader', 'Reads the text of a message')
  const negotiation = { input_mime_types: ['text/plain'] }
  const refused = await call('message/send', saying('', { parts }, { negotiation }))
  expect(refused.json.error).toMatchObject({
    code: -32004,
    data: { reason: 'no_agent', candidates: [{ agent: { slug: 'reader' }, subscores: { skill_match: 0 } }] },
  })
  expect(reader.calls).toEqual([])
  Object.assign(negotiation, { task_summary: 'read the text of this message' })
  const taken = await call('message/send', saying('', { parts }, { negotiation }))
  expect([taken.status, taken.headers.get('x-agent')]).toEqual([200, 'reader'])
})

test('configuration.negotiation carries the fields of the request', async () => {
  const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
  const negotiation = { task_summary: 'the best chess move' }
  await call('message/send', saying('weather forecast', {}, { negotiation }))
  expect([sky.calls.length, board.calls.length]).toEqual([0, 1])
  const refused = await call('message/send', saying('weather forecast', {}, { negotiation: { minScore: 1 } }))
  expect(refused.json.error.code).toBe(-32004)
})

test.each<[string, unknown, number]>([
  ['a list', [], -32602],
  ['min_score above 1', { min_score: 2 }, -32602],
  ['a weight below 0', { weights: { skill_match: -1 } }, -32602],
  ['an empty text', { task_summary: '' }, -32602],
  ['a text', 'sky', -32602],
])(
  'configuration.negotiation that is %s is rejected with -32602 and the path',
  async (_what, negotiation, code) => {
    await agent('sky', weather)
    const refused = await call('message/send', saying('weather', {}, { negotiation }))
    expect(refused.json).toMatchObject({ id: 'one', error: { code } })
    expect(refused.json.error.data.issues[0].path).toMatch(/^configuration\.negotiation/)
  },
)

test('a context stays with its agent, whatever the messages say', async () => {
  const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
  const contextId = crypto.randomUUID()
  await call('message/send', saying('weather forecast', { contextId }))
  const second = await call('message/send', saying('the best chess move', { contextId }))
  expect(second.headers.get('x-agent')).toBe('sky')
  expect(second.headers.get('x-negotiation-id')).toBeNull()
  const taskId = second.json.result.id as string
  await call('message/send', saying('chess again', { taskId }))
  expect([sky.sent().length, board.sent().length]).toEqual([3, 0])
  await call('message/send', saying('the best chess move', { referenceTaskIds: [taskId] }))
  expect(board.sent()).toHaveLength(1)
  await call('message/send', saying('the best chess move', { contextId }, undefined), {
    authorization: bearer('bob'),
  })
  expect(board.sent()).toHaveLength(2)
})

test('two messages of the same new context go to one agent', async () => {
  const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
  const contextId = crypto.randomUUID()
  const texts = ['weather forecast', 'best chess move', 'weather forecast', 'best chess move']
  await Promise.all(texts.map((text) => call('message/send', saying(text, { contextId }))))
  expect([sky.sent().length, board.sent().length].toSorted((a, b) => a - b)).toEqual([0, 4])
})

test('the next agent is tried only if the previous one received nothing of the message', async () => {
  const dead = await agent('sky', weather)
  const second = await agent('sky-two', 'Weather forecast')
  await dead.stop()
  const taken = await call('message/send', saying('weather forecast for any city'))
  expect(taken.headers.get('x-agent')).toBe('sky-two')
  expect(second.sent()).toHaveLength(1)
})

test('the error for a message that no candidate accepts lists the attempts, and the record has no chosen agent', async () => {
  const dead = await agent('sky', weather)
  const busy = await agent('sky-two', 'Weather forecast')
  await dead.stop()
  busy.on['message/send'] = ({ response, id }) => fail(response, id, 503, -32042, { reason: 'queue_full' })
  const refused = await call('message/send', saying('weather forecast for any city'))
  const tried = [
    { agent: 'sky', outcome: 'not reached' },
    { agent: 'sky-two', outcome: 'busy' },
  ]
  expect([refused.status, refused.headers.get('x-agent')]).toEqual([503, null])
  expect(refused.headers.get('retry-after')).toBe('2')
  expect(refused.json.error).toMatchObject({ code: -32042, data: { reason: 'agent_down', tried } })
  const id = refused.headers.get('x-negotiation-id')
  const headers = { authorization: bearer('alice') }
  const record = await fetch(`${gateway().addresses.public}/negotiations/${id}`, { headers })
  expect(await record.json()).toMatchObject({ can_handle: true, chosen: null, tried })
})

test.each(['draining', 'queue_full', 'gateway_keys'])(
  'a 503 with %s sends the message to the next agent',
  async (reason) => {
    const busy = await agent('sky', weather)
    busy.on['message/send'] = ({ response, id }) => fail(response, id, 503, -32042, { reason })
    const second = await agent('sky-two', 'Weather forecast')
    const taken = await call('message/send', saying('weather forecast for any city'))
    expect([taken.status, taken.headers.get('x-agent')]).toEqual([200, 'sky-two'])
    expect([busy.sent().length, second.sent().length]).toEqual([1, 1])
  },
)

test.each([
  ['of another reason', -32042, { reason: 'storage' }],
  ['without a reason', -32042, {}],
  ['of another code', -32603, { reason: 'draining' }],
])(
  'a 503 %s is returned to the caller, because the message may have been accepted',
  async (_what, code, data) => {
    const odd = await agent('sky', weather)
    odd.on['message/send'] = ({ response, id }) => fail(response, id, 503, code, data)
    const second = await agent('sky-two', 'Weather forecast')
    const refused = await call('message/send', saying('weather forecast for any city'))
    expect([refused.status, refused.json.error.code, refused.headers.get('x-agent')]).toEqual([
      503,
      code,
      'sky',
    ])
    expect(second.calls).toEqual([])
  },
)

test('a message with an unknown outcome is sent again only to the same agent, with the same key', async () => {
  const flaky = await agent('sky', weather)
  const second = await agent('sky-two', 'Weather forecast')
  flaky.on['message/send'] = ({ response, params }) =>
    flaky.sent().length < 3 ? void response.destroy() : flaky.take(params)
  const taken = await call('message/send', saying('weather forecast for any city'))
  expect([taken.status, taken.headers.get('x-agent'), second.calls.length]).toEqual([200, 'sky', 0])
  const keys = new Set(flaky.sent().map(({ headers }) => headers['idempotency-key']))
  expect([flaky.sent().length, keys.size]).toEqual([3, 1])
  expect(new Set(flaky.sent().map(({ body }) => body)).size).toBe(1)
})

test('an outcome that stays unknown gives 503 with X-Agent and the key, and a repeated message goes to the same agent', async () => {
  const flaky = await agent('sky', weather)
  const second = await agent('sky-two', 'Weather forecast')
  // Breaks the connection, then stops responding.
  flaky.on['message/send'] = ({ response }) =>
    flaky.sent().length === 1 ? void response.destroy() : new Promise(() => {})
  const params = saying('weather forecast for any city')
  const lost = await call('message/send', params)
  const key = lost.headers.get('idempotency-key') ?? ''
  expect(lost.status).toBe(503)
  expect(lost.headers.get('x-agent')).toBe('sky')
  expect(lost.json.error).toMatchObject({
    code: -32042,
    data: { reason: 'outcome_unknown', idempotency_key: key },
  })
  delete flaky.on['message/send']
  const again = await call('message/send', params, { 'idempotency-key': key })
  expect([again.status, again.headers.get('x-agent')]).toEqual([200, 'sky'])
  expect(flaky.sent().at(-1)?.headers['idempotency-key']).toBe(key)
  expect(second.calls).toEqual([])
})

test("a client's idempotency key binds the message to its agent, however the scores change", async () => {
  const sky = await agent('sky', weather)
  const params = saying('weather forecast for any city')
  const headers = { 'idempotency-key': 'k1' }
  await call('message/send', params, headers)
  const better = await agent('sky-two', `${weather} weather forecast for any city`)
  gateway().registry.heartbeat(gateway().registry.find('sky')?.id ?? '', { queueDepth: 50 })
  await call('message/send', params, headers)
  expect([sky.sent().length, better.sent().length]).toEqual([2, 0])
})

test('a stream is forwarded frame by frame, and its task is known from the first frame', async () => {
  const sky = await agent('sky', weather)
  let response: http.ServerResponse | undefined
  const [id, context_id] = [crypto.randomUUID(), crypto.randomUUID()]
  const first = `id: 0\ndata: ${JSON.stringify({ kind: 'status-update', task_id: id, context_id, status: { state: 'submitted' } })}\n\n`
  sky.on['message/stream'] = (one) => {
    response = one.response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(': hello\n\n')
    response.write(first)
  }
  sky.tasks.set(id, { id, context_id, status: { state: 'working', timestamp: '' } })
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'message/stream',
    params: saying('weather forecast'),
  })
  const stream = await fetch(`${gateway().addresses.public}/message/stream`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: bearer('alice') },
    body,
  })
  expect(stream.headers.get('x-agent')).toBe('sky')
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.endsWith(first)) text += (await reader?.read())?.value ?? ''
  expect(text).toBe(`: hello\n\n${first}`)
  expect((await call('tasks/get', { id })).headers.get('x-agent')).toBe('sky')
  response?.write('data: {"n":1}\n\n')
  expect((await reader?.read())?.value).toBe('data: {"n":1}\n\n')
  response?.end()
  expect((await reader?.read())?.done).toBe(true)
})

test('an agent that does not support streaming gets no stream request', async () => {
  await agent('sky', weather, { card: { capabilities: { streaming: false } } })
  const refused = await call('message/stream', saying('weather forecast'))
  expect(refused.json.error).toMatchObject({
    code: -32004,
    data: { excluded: [{ agent: 'sky', rule: 'it does not stream' }] },
  })
})
