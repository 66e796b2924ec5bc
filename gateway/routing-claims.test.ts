import { expect, test } from 'vitest'
import { agent, bearer, call, fail, gateway, gatewayForEachTest, saying } from './testing.ts'

gatewayForEachTest({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1' })

const weather = 'Weather forecast for any city'
const chess = 'Plays chess, suggests the best move'
const stranger = { origin: 'registered', admittedBy: 'open' }

/** Starts an external agent that claims every id. */
async function liar(more: object = stranger) {
  const one = await agent('liar', 'Tells fables', more)
  one.on['tasks/get'] = ({ params }) => ({
    id: params['task_id'],
    context_id: crypto.randomUUID(),
    status: { state: 'completed' },
  })
  one.on['tasks/list'] = ({ params }) => [
    { id: crypto.randomUUID(), context_id: params['context_id'], status: { state: 'completed' } },
  ]
  return one
}

test("an external agent that claims a supervised agent's task does not get it", async () => {
  await liar()
  const board = await agent('board', chess)
  board.on['tasks/get'] = async ({ params }) => {
    await new Promise((resolve) => setTimeout(resolve, 100))
    return board.tasks.get(params['task_id'] as string)
  }
  const task = board.take(saying('hello')) as { id: string }
  const got = await call('tasks/get', { task_id: task.id })
  expect(got.headers.get('x-agent')).toBe('board')
})

test('the claims of an external agent do not affect the routing of new messages', async () => {
  const [sky, fables] = [await agent('sky', weather), await liar()]
  const ids = { taskId: crypto.randomUUID(), contextId: crypto.randomUUID() }
  const taken = await call('message/send', saying('weather forecast', ids))
  expect(taken.headers.get('x-agent')).toBe('sky')
  expect(fables.calls).toEqual([])
  expect(sky.sent()).toHaveLength(1)
})

test('a task created directly at an external agent is not looked up', async () => {
  const board = await agent('board', chess, stranger)
  const sky = await agent('sky', weather)
  const task = board.take(saying('hello')) as { id: string }
  const got = await call('tasks/get', { task_id: task.id })
  expect([got.status, sky.calls.length, board.calls.length]).toEqual([404, 1, 0])
})

test('a response does not move a task or context that belongs to another agent', async () => {
  const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
  const first = await call('message/send', saying('weather forecast'))
  const { id, context_id } = first.json.result as { id: string; context_id: string }
  board.on['message/send'] = () => ({ id, context_id, kind: 'task', status: { state: 'submitted' } })
  const second = await call('message/send', saying('the best chess move', { referenceTaskIds: [id] }))
  expect(second.headers.get('x-agent')).toBe('board')
  const got = await call('tasks/get', { task_id: id })
  expect(got.headers.get('x-agent')).toBe('sky')
  const third = await call('message/send', saying('the best chess move', { contextId: context_id }))
  expect(third.headers.get('x-agent')).toBe('sky')
  expect(board.sent('tasks/get')).toEqual([])
  expect(sky.sent()).toHaveLength(2)
})

test('a response records only the task that the message was sent for', async () => {
  const sky = await agent('sky', weather)
  const [taskId, other] = [crypto.randomUUID(), crypto.randomUUID()]
  sky.on['message/send'] = () => ({ id: other, context_id: other, kind: 'task' })
  sky.on['tasks/get'] = ({ response, id }) => fail(response, id, 404, -32001, {})
  await call('message/send', saying('weather forecast', { taskId }))
  expect((await call('tasks/get', { task_id: other })).status).toBe(404)
})

test('a context that was created directly at an agent is found with one query and stays with its agent', async () => {
  const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
  board.on['tasks/list'] = ({ params }) =>
    [...board.tasks.values()].filter((task) => task.context_id === params['context_id'])
  sky.on['tasks/list'] = () => []
  const contextId = crypto.randomUUID()
  board.take(saying('hello', { contextId }))
  for (let time = 0; time < 2; time += 1) {
    const taken = await call('message/send', saying('weather forecast', { contextId }))
    expect(taken.headers.get('x-agent')).toBe('board')
  }
  expect(sky.calls.length).toBeLessThanOrEqual(1)
  expect(board.sent('tasks/list')).toHaveLength(1)
})

test('concurrent lookups of one id query the agents once', async () => {
  const sky = await agent('sky', weather)
  sky.on['tasks/get'] = async () => {
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const id = crypto.randomUUID()
  const answers = await Promise.all(Array.from({ length: 10 }, () => call('tasks/get', { task_id: id })))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]))
  expect(sky.calls).toHaveLength(1)
})

test.each([401, 403])(
  'an agent that rejects a lookup with %i is reported, because it may have the task',
  async (status) => {
    const sky = await agent('sky', weather)
    sky.on['tasks/get'] = ({ response, id }) => fail(response, id, status, -32013, {})
    const missing = await call('tasks/get', { task_id: crypto.randomUUID() })
    expect([missing.status, missing.headers.get('x-parley-incomplete')]).toEqual([404, 'sky'])
  },
)

test.each([429, 500, 503])(
  'an agent that answers a lookup with %i may have the task, so the task is not reported as missing',
  async (status) => {
    const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
    sky.on['tasks/get'] = ({ response, id }) => fail(response, id, status, -32042, {})
    const asked = await call('tasks/get', { task_id: crypto.randomUUID() })
    expect(asked).toMatchObject({
      status: 503,
      json: { error: { code: -32042, data: { reason: 'agent_down', agent: 'sky' } } },
    })
    expect(asked.headers.get('retry-after')).toBe('2')
    expect(asked.headers.get('x-parley-incomplete')).toBe('sky')
    expect(board.calls).toHaveLength(1)
  },
)

test('while an agent rejects lookups, a message with an unknown taskId goes to no external agent', async () => {
  const [sky, tales] = [await agent('sky', weather), await agent('tales', 'Tells fables', stranger)]
  sky.on['tasks/get'] = ({ response, id }) => fail(response, id, 403, -32013, {})
  const refused = await call('message/send', saying('tells fables', { taskId: crypto.randomUUID() }))
  expect(refused.json.error.code).toBe(-32004)
  expect(tales.calls).toEqual([])
  expect((await call('message/send', saying('tells fables'))).headers.get('x-agent')).toBe('tales')
})

test('a quarantined agent is reported but does not delay messages', async () => {
  const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
  await gateway().registry.quarantine(gateway().registry.find('sky')?.id ?? '', 'operator', 'broken')
  const missing = await call('tasks/get', { task_id: crypto.randomUUID() })
  expect([missing.status, missing.headers.get('x-parley-incomplete')]).toEqual([404, 'sky'])
  await call('message/send', saying('best chess move', { taskId: crypto.randomUUID() }))
  expect([sky.calls.length, board.sent().length]).toEqual([0, 1])
})

test('an agent that missed a lookup deadline is reported and not queried again for a while', async () => {
  const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
  sky.on['tasks/get'] = () => new Promise(() => {})
  const ask = () => call('tasks/get', { task_id: crypto.randomUUID() })
  for (const answer of [await ask(), await ask()])
    expect([answer.status, answer.headers.get('x-parley-incomplete')]).toEqual([503, 'sky'])
  expect([sky.calls.length, board.calls.length]).toEqual([1, 2])
})

test('a message of another owner with the same ids is routed independently', async () => {
  const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
  const contextId = crypto.randomUUID()
  await call('message/send', saying('weather forecast', { contextId }))
  await call('message/send', saying('the best chess move', { contextId }), { authorization: bearer('bob') })
  expect([sky.sent().length, board.sent().length]).toEqual([1, 1])
})

test('a call for a task of an agent that has left the registry reports this without naming an agent', async () => {
  const [sky] = [await agent('sky', weather), await agent('board', chess)]
  const key = { 'idempotency-key': 'one' }
  const { id, context_id } = (await call('message/send', saying('weather forecast'), key)).json.result
  sky.on['message/send'] = ({ response, id: rpcId }) => fail(response, rpcId, 402, -32602, {})
  const unpaid = saying('weather forecast')
  await call('message/send', unpaid)
  await gateway().registry.remove(gateway().registry.find('sky')?.id ?? '')
  for (const [method, params, headers] of [
    ['tasks/get', { task_id: id }, {}],
    ['contexts/clear', { context_id }, {}],
    ['message/send', saying('go on', { taskId: id }), {}],
    ['message/send', saying('go on', { contextId: context_id }), {}],
    ['message/send', saying('weather forecast'), key],
    ['message/send', unpaid, {}],
  ] as const) {
    const gone = await call(method, params, headers)
    expect(gone).toMatchObject({ status: 503, json: { error: { code: -32042 } } })
    expect(gone.json.error.data).toEqual({ reason: 'agent_left' })
    expect(gone.json.error.message).toMatch(/^The agent that has this \w+ has left the registry: /)
    expect(gone.headers.get('retry-after')).toBe('60')
  }
})

test('the error for a payment session that an unresponsive agent may have created names that agent', async () => {
  const card = { executionCost: { amount: '0.01' } }
  const [sky] = [await agent('sky', weather, { card }), await agent('board', chess)]
  const { registry } = gateway()
  registry.setStatus(registry.find('sky')?.id ?? '', 'starting')
  const session = { 'x-payment-session': crypto.randomUUID() }
  const asked = await call('message/send', saying('weather forecast'), session)
  expect(asked).toMatchObject({
    status: 503,
    json: { error: { code: -32042, data: { reason: 'agent_down', agent: 'sky' } } },
  })
  expect(sky.calls).toEqual([])
})
