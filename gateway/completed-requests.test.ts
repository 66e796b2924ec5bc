import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import {
  agent,
  bearer,
  call,
  type FakeAgent,
  fail,
  gateway,
  gatewayForEachTest,
  post,
  saying,
} from './testing.ts'

gatewayForEachTest({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1' })

const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/
const external = { origin: 'registered', verified: false, admittedBy: 'operator' }
const weather = (more: object = {}) => agent('weather', 'forecast the weather', { ...external, ...more })
const text = 'forecast the weather'

interface Sent {
  id: unknown
  params: { message: Record<string, string>; configuration: Record<string, unknown> }
}
const bodies = (one: FakeAgent, method = 'message/send') =>
  one.sent(method).map(({ body }) => JSON.parse(body) as Sent)

test('POST / adds fields that an external agent may require: contextId, taskId, configuration and a UUID as id', async () => {
  const one = await weather({ card: { name: 'weather', defaultOutputModes: ['text/plain', 'image/png'] } })
  const answer = await call('message/send', saying(text))
  expect(answer.status).toBe(200)
  const [sent] = bodies(one)
  expect(sent?.id).toMatch(uuid)
  expect(sent?.params.message['contextId']).toMatch(uuid)
  expect(sent?.params.message['taskId']).toMatch(uuid)
  expect(sent?.params.configuration).toEqual({ acceptedOutputModes: ['text/plain', 'image/png'] })
  expect(answer.json).toMatchObject({ id: 'one', result: { id: sent?.params.message['taskId'] } })
})

test.each<[string, unknown]>([
  ['a number', 7],
  ['a text', '1'],
  ['a text that JSON escapes', 'a "b" \\ ü'],
])('the caller gets its own JSON-RPC id back if the id is %s', async (_what, id) => {
  const one = await weather()
  const send = JSON.stringify({ jsonrpc: '2.0', id, method: 'message/send', params: saying(text) })
  const { json } = await post('/', send)
  expect(json.id).toBe(id)
  const get = JSON.stringify({ jsonrpc: '2.0', id, method: 'tasks/get', params: { task_id: json.result.id } })
  expect((await post('/', get)).json).toMatchObject({ id, result: { id: json.result.id } })
  expect(bodies(one, 'tasks/get')[0]?.id).toMatch(uuid)
})

test('the id is restored in a response that arrives in chunks and in every event of a stream', async () => {
  const one = await weather()
  one.on['tasks/get'] = async ({ response, id, params }) => {
    const whole = JSON.stringify({
      jsonrpc: '2.0',
      id,
      result: { id: params['task_id'], text: 'a "quoted" text' },
    })
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(whole),
    })
    for (const byte of whole) {
      response.write(byte)
      await new Promise((next) => setImmediate(next))
    }
    response.end()
  }
  one.on['message/stream'] = ({ response, id }) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const state of ['working', 'completed'])
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { status: { state } } })}\n\n`)
    response.end()
  }
  const { json: sent } = await call('message/send', saying(text))
  expect((await call('tasks/get', { task_id: sent.result.id })).json).toEqual({
    jsonrpc: '2.0',
    id: 'one',
    result: { id: sent.result.id, text: 'a "quoted" text' },
  })
  const { text: frames } = await call('message/stream', saying(text))
  expect(frames.match(/"id":"one"/g)).toHaveLength(2)
})

test('the fields that a caller sets are unmodified, and a complete request is forwarded byte for byte', async () => {
  const one = await weather()
  const [contextId, taskId, id] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
  const { message } = saying(text, { context_id: contextId, task_id: taskId })
  const params = { message, configuration: { accepted_output_modes: ['text/plain'] } }
  const body = `{ "jsonrpc": "2.0", "id": "${id}", "method": "message/send", "params": ${JSON.stringify(params)} }`
  expect((await post('/', body)).status).toBe(200)
  expect(one.sent()[0]?.body).toBe(body)
})

test('the response to a message is not compressed, so that its task and rejections are recognized', async () => {
  const one = await weather()
  const compressing =
    (answer: (sent: Sent) => object): FakeAgent['on'][string] =>
    ({ response, headers, body }) => {
      const sent = JSON.parse(body) as Sent
      const text = JSON.stringify({ jsonrpc: '2.0', id: sent.id, ...answer(sent) })
      const encoding = headers['accept-encoding']?.includes('gzip') ? 'gzip' : 'identity'
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding })
      response.end(encoding === 'gzip' ? gzipSync(text) : text)
    }
  one.on['message/send'] = compressing((sent) => ({ result: one.take(sent.params as never) }))
  const sending = (id: string) => {
    const { message } = saying(text, { contextId: crypto.randomUUID(), taskId: crypto.randomUUID() })
    const params = { message, configuration: { acceptedOutputModes: ['text/plain'] } }
    const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'message/send', params })
    return post('/', body, { 'accept-encoding': 'gzip' })
  }
  const { json } = await sending(crypto.randomUUID())
  expect((await call('tasks/get', { task_id: json.result.id })).json.result.id).toBe(json.result.id)
  one.on['message/send'] = compressing(() => ({ error: { code: -32602, message: 'no' } }))
  const two = await agent('climate', 'forecast the weather', external)
  await sending(crypto.randomUUID())
  await sending(crypto.randomUUID())
  expect(two.sent().length).toBe(2)
})

test('a message in a known context keeps that context, and a message for a known task gets the context of the task', async () => {
  const one = await weather()
  const { json } = await call('message/send', saying(text))
  const { id, context_id } = json.result
  await call('message/send', saying('and tomorrow?', { contextId: context_id }))
  await call('message/send', saying('the answer', { taskId: id }))
  const [, second, third] = bodies(one).map(({ params }) => params.message)
  expect(second).toMatchObject({ contextId: context_id, taskId: expect.stringMatching(uuid) })
  expect(second?.['taskId']).not.toBe(id)
  expect(third).toMatchObject({ contextId: context_id, taskId: id })
})

test('a repeated call with the same Idempotency-Key gets the same ids', async () => {
  const one = await weather()
  const params = saying(text)
  for (let times = 0; times < 2; times += 1) await call('message/send', params, { 'idempotency-key': 'k1' })
  await call('message/send', params, { 'idempotency-key': 'k2' })
  const [first, second, third] = one.sent().map(({ body }) => body)
  expect(second).toBe(first)
  expect(third).not.toBe(first)
})

test('requests to supervised agents and to /agents/{slug}/ are not modified', async () => {
  const one = await weather()
  const ours = await agent('poet', 'write poems')
  const send = (words: string) =>
    JSON.stringify({ jsonrpc: '2.0', id: 'one', method: 'message/send', params: saying(words) })
  const [direct, poem] = [send(text), send('write poems')]
  await post('/agents/weather/', direct)
  await post('/', poem)
  expect([one.sent()[0]?.body, ours.sent()[0]?.body]).toEqual([direct, poem])
})

const refusals = [-32700, -32601, -32602]
const refusing = (code: number) => (one: FakeAgent) => {
  one.on['message/send'] = ({ response, id }) => fail(response, id, code === -32601 ? 404 : 400, code, {})
}

test.each(refusals)(
  'a message that an external agent rejects with %i is sent to one further candidate',
  async (code) => {
    const [one, two, three] = [
      await weather(),
      await agent('climate', 'forecast the weather', external),
      await agent('storms', 'forecast the weather', external),
    ]
    const all = [one, two, three]
    for (const each of all) refusing(code)(each)
    const none = await call('message/send', saying(text))
    expect([none.json.error.code, all.flatMap((each) => each.sent())]).toMatchObject([code, { length: 2 }])
    expect(none.headers.get('x-agent')).not.toBeNull()
    const negotiation = `/negotiations/${none.headers.get('x-negotiation-id')}`
    const record = await fetch(`${gateway().addresses.public}${negotiation}`, {
      headers: { authorization: bearer('alice') },
    })
    expect(await record.json()).toMatchObject({ tried: [{ outcome: 'refused' }, { outcome: 'refused' }] })
    const tried = all.filter((each) => each.sent().length > 0)
    const untried = all.find((each) => each.sent().length === 0)
    expect(untried).toBeDefined()
    delete tried[1]?.on['message/send']
    const some = await call('message/send', saying(text))
    expect([some.status, some.headers.get('x-agent')]).toEqual([200, tried[1]?.slug])
    expect(tried[0]?.sent()).toHaveLength(2)
  },
)

const payTo = '0x1111111111111111111111111111111111111111'
const authorization = {
  from: payTo,
  to: payTo,
  value: '10000',
  validAfter: '0',
  validBefore: '9999999999',
  nonce: `0x${'2'.repeat(64)}`,
}
const payload = { signature: `0x${'1'.repeat(130)}`, authorization }
const accepted = { scheme: 'exact', network: 'eip155:84532', asset: '0x01', amount: '10000', payTo }
const payment = Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload })).toString('base64')
const paid = (name: string) => ({
  ...external,
  card: { name, description: text, executionCost: { amount: '0.01', payTo } },
})
test.each<[string, number, Record<string, string>, (name: string) => object]>([
  ['with another code', -32004, {}, () => external],
  ['of a message with a payment', -32602, { 'x-payment': payment }, paid],
  ['of a supervised agent', -32602, {}, () => ({})],
])('a rejection %s is final', async (_what, code, headers, origin) => {
  const all = [
    await agent('weather', 'forecast the weather', origin('weather')),
    await agent('climate', 'forecast the weather', origin('climate')),
  ]
  for (const each of all) refusing(code)(each)
  expect((await call('message/send', saying(text), headers)).json.error.code).toBe(code)
  expect(all.flatMap((each) => each.sent())).toHaveLength(1)
})

test('the rejection of the only candidate is returned', async () => {
  const one = await weather()
  refusing(-32602)(one)
  const { status, json, headers } = await call('message/send', saying(text))
  expect([status, json.error.code, headers.get('x-agent')]).toEqual([400, -32602, 'weather'])
  expect(one.sent()).toHaveLength(1)
})

test('a rejected message in a known context is not sent to another agent', async () => {
  const one = await weather()
  const two = await agent('climate', 'forecast the weather', external)
  const { json, headers } = await call('message/send', saying(text))
  const home = headers.get('x-agent') === 'weather' ? one : two
  refusing(-32602)(home)
  const { json: refused } = await call('message/send', saying(text, { contextId: json.result.context_id }))
  expect(refused.error.code).toBe(-32602)
  expect(one.sent().length + two.sent().length).toBe(2)
})
