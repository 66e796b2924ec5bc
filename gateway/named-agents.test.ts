import { expect, test } from 'vitest'
import { agent, bearer, call, type FakeAgent, gateway, gatewayForEachTest, post, saying } from './testing.ts'

gatewayForEachTest({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1' })

const external = { origin: 'registered', admittedBy: 'operator' }
const chess = 'Plays chess, suggests the best move'
const tales = () => agent('tales', 'Tells fables', external)

const rpc = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 'one', method, params })
const send = (params: object, method = 'message/send') => post('/agents/tales/', rpc(method, params))
const agentOf = async (id: string, authorization = bearer('alice')) =>
  (await call('tasks/get', { task_id: id }, { authorization })).headers.get('x-agent')

test('only the caller finds a task that it sent to a named external agent', async () => {
  const [one, board] = [await tales(), await agent('board', chess)]
  const { id, context_id } = (await send(saying('a fable'))).json.result
  await expect.poll(() => agentOf(id)).toBe('tales')
  const next = await call('message/send', saying('go on', { contextId: context_id }))
  expect(next.headers.get('x-agent')).toBe('tales')
  expect(await agentOf(id, bearer('bob'))).toBeNull()
  expect((await call('tasks/list', {})).headers.get('x-parley-incomplete')).toBe('tales')
  expect(one.sent('tasks/list')).toEqual([])
  expect(board.sent()).toEqual([])
})

test('tasks created by streams and by large messages are found, too', async () => {
  const one = await tales()
  const ids = [crypto.randomUUID(), crypto.randomUUID()]
  one.on['message/stream'] = ({ response }) => {
    const status = { state: 'submitted', timestamp: '2026-01-01T00:00:00.000000+00:00' }
    const event = {
      sequence: 0,
      kind: 'status-update',
      task_id: ids[0],
      context_id: crypto.randomUUID(),
      status,
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(': hello\n\n')
    response.end(`data: ${JSON.stringify(event)}\n\n`)
  }
  one.on['tasks/get'] = ({ params }) => ({ id: params['task_id'], context_id: crypto.randomUUID() })
  await send(saying('a fable'), 'message/stream')
  await expect.poll(() => agentOf(ids[0] as string)).toBe('tales')
  const large = saying(`a fable ${'x'.repeat(1_000_000)}`, { taskId: ids[1] })
  expect((await send(large)).status).toBe(200)
  await expect.poll(() => agentOf(ids[1] as string)).toBe('tales')
})

test("an external agent that returns a supervised agent's task does not get it by this route either", async () => {
  const [one, board] = [await tales(), await agent('board', chess)]
  const theirs = board.take(saying('hello')) as { id: string }
  one.on['message/send'] = () => ({ ...theirs, kind: 'task' })
  await send(saying('a fable'))
  await expect
    .poll(async () => (await call('tasks/list', {})).headers.get('x-parley-incomplete'))
    .toBe('tales')
  expect(await agentOf(theirs.id)).toBe('board')
  const sent = (await call('message/send', saying('best chess move'))).json.result as { id: string }
  one.on['message/send'] = () => ({ ...sent, kind: 'task' })
  await send(saying('a fable'))
  expect(await agentOf(sent.id)).toBe('board')
  expect(one.sent('tasks/get')).toEqual([])
})

test('no route is recorded for a response without a task, a rejection or a request without a token', async () => {
  const one = await tales()
  const id = crypto.randomUUID()
  one.on['message/send'] = ({ response }) =>
    void response
      .writeHead(400, { 'content-type': 'application/json' })
      .end(JSON.stringify({ result: { id } }))
  await send(saying('a fable'))
  one.on['message/send'] = () => ({ kind: 'message', parts: [] })
  await send(saying('a fable'))
  delete one.on['message/send']
  await post('/agents/tales/', rpc('message/send', saying('a fable')), { authorization: 'Bearer nobody' })
  await post('/agents/tales/', rpc('tasks/get', { task_id: id }))
  expect(await agentOf(id)).toBeNull()
  expect((await call('tasks/list', {})).headers.get('x-parley-incomplete')).toBeNull()
})

test('a payment session created at a named external agent pays for a message there', async () => {
  const charges = { card: { executionCost: { amount: '0.01' } } }
  const one: FakeAgent = await agent('tales', 'Tells fables', { ...external, ...charges })
  await agent('board', chess, charges)
  const session = crypto.randomUUID()
  one.get = () => ({ session_id: session })
  one.on[''] = ({ response }) => void response.end(JSON.stringify({ session_id: session, status: 'pending' }))
  const made = await post('/agents/tales/api/start-payment-session', JSON.stringify({ method: '' }))
  expect(made.json.session_id).toBe(session)
  const pay = () => call('message/send', saying('best chess move'), { 'x-payment-session': session })
  await expect.poll(async () => (await pay()).headers.get('x-agent')).toBe('tales')
  expect(gateway().registry.find('tales')).toBeDefined()
})
