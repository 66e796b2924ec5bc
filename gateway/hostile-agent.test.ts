import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { agent, call, type FakeAgent, gateway, gatewayForEachTest, saying } from './testing.ts'

gatewayForEachTest({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1' })

const weather = 'Weather forecast for any city'
const chess = 'Plays chess, suggests the best move'

/** Starts an external agent that claims every id and is admitted by an operator. */
async function hostile() {
  const one = await agent('liar', 'Tells fables', { origin: 'registered', admittedBy: 'operator' })
  const status = { state: 'completed', timestamp: '2026-01-01T00:00:00.000000+00:00' }
  one.on['tasks/get'] = ({ params }) => ({ id: params['task_id'], context_id: randomUUID(), status })
  one.on['tasks/list'] = ({ params }) => [
    { id: randomUUID(), context_id: params['context_id'] ?? randomUUID(), status },
  ]
  return one
}

/** Accepts connections and never responds, like a process stopped with SIGSTOP. */
function freeze(one: FakeAgent): void {
  for (const method of ['message/send', 'tasks/get', 'tasks/list', 'tasks/cancel', 'contexts/list'])
    one.on[method] = () => new Promise(() => {})
}

function thaw(one: FakeAgent): void {
  one.on = {}
}

const unavailable = (slug: string) => ({
  status: 503,
  json: { error: { code: -32042, data: { reason: 'agent_down', agent: slug } } },
})

test.each(['contextId', 'taskId'])(
  'a hostile external agent gets no message with a fresh %s that another agent must answer',
  async (name) => {
    const [sky, liar] = [await agent('sky', weather), await hostile()]
    for (let time = 0; time < 10; time += 1) {
      const taken = await call('message/send', saying('weather forecast', { [name]: randomUUID() }))
      expect(taken.headers.get('x-agent')).toBe('sky')
    }
    expect(sky.sent()).toHaveLength(10)
    expect(liar.calls).toEqual([])
  },
)

test('a hostile external agent cannot forge a task that was created directly at a supervised agent', async () => {
  const [board, liar] = [await agent('board', chess), await hostile()]
  for (let time = 0; time < 20; time += 1) {
    const task = board.take(saying('hello')) as { id: string }
    const got = await call('tasks/get', { task_id: task.id })
    expect([got.headers.get('x-agent'), got.json.result.id]).toEqual(['board', task.id])
  }
  expect(liar.calls).toEqual([])
})

test('an unknown task is reported as not found, whatever an external agent claims', async () => {
  const [, liar] = [await agent('board', chess), await hostile()]
  expect((await call('tasks/get', { task_id: randomUUID() })).status).toBe(404)
  expect((await call('contexts/clear', { context_id: randomUUID() })).status).toBe(404)
  expect(liar.calls).toEqual([])
})

test.each(['tasks/get', 'tasks/cancel'])(
  'while a supervised agent is frozen, %s for an unknown task gets 503 with Retry-After, and no external agent gets the call',
  async (method) => {
    const [sky, board, liar] = [await agent('sky', weather), await agent('board', chess), await hostile()]
    freeze(sky)
    for (let time = 0; time < 3; time += 1) {
      const answer = await call(method, { task_id: randomUUID() })
      expect(answer).toMatchObject(unavailable('sky'))
      expect(answer.headers.get('retry-after')).toBe('2')
    }
    // A task of another supervised agent is still found.
    const task = board.take(saying('hello')) as { id: string }
    expect((await call('tasks/get', { task_id: task.id })).headers.get('x-agent')).toBe('board')
    expect(liar.calls).toEqual([])
  },
)

test('while a supervised agent is frozen, a message with an unknown taskId gets 503 with Retry-After and goes to no agent', async () => {
  const [sky, board, liar] = [await agent('sky', weather), await agent('board', chess), await hostile()]
  freeze(sky)
  const ids = { taskId: randomUUID(), contextId: randomUUID() }
  for (const text of ['best chess move', 'fables']) {
    const answer = await call('message/send', saying(text, ids))
    expect(answer).toMatchObject(unavailable('sky'))
    expect(answer.headers.get('retry-after')).toBe('2')
  }
  expect([board.sent(), sky.sent(), liar.calls]).toEqual([[], [], []])
})

test('while a supervised agent is frozen, a message with an unknown contextId is routed as a new conversation', async () => {
  const [sky, board, liar] = [await agent('sky', weather), await agent('board', chess), await hostile()]
  freeze(sky)
  for (let time = 0; time < 3; time += 1) {
    const taken = await call('message/send', saying('best chess move', { contextId: randomUUID() }))
    expect([taken.status, taken.headers.get('x-agent')]).toEqual([200, 'board'])
  }
  expect(board.sent()).toHaveLength(3)
  expect(liar.calls).toEqual([])
})

test.each(['starting', 'unreachable'] as const)(
  'a supervised agent that is %s may have a task, like one that is frozen',
  async (status) => {
    const [sky, , liar] = [await agent('sky', weather), await agent('board', chess), await hostile()]
    const { registry } = gateway()
    registry.setStatus(registry.find('sky')?.id ?? '', status)
    expect(await call('tasks/get', { task_id: randomUUID() })).toMatchObject(unavailable('sky'))
    const withTask = saying('best chess move', { taskId: randomUUID() })
    expect(await call('message/send', withTask)).toMatchObject(unavailable('sky'))
    const withContext = saying('best chess move', { contextId: randomUUID() })
    expect((await call('message/send', withContext)).headers.get('x-agent')).toBe('board')
    registry.setStatus(registry.find('sky')?.id ?? '', 'ready')
    expect((await call('message/send', withTask)).headers.get('x-agent')).toBe('board')
    expect([sky.sent(), liar.calls]).toEqual([[], []])
  },
)

test("an external agent that returns the id of a supervised agent's task does not get that task", async () => {
  const [board, liar] = [await agent('board', chess), await hostile()]
  const theirs = board.take(saying('hello')) as { id: string; context_id: string }
  board.on['tasks/list'] = ({ params }) =>
    [...board.tasks.values()].filter(({ context_id }) => context_id === params['context_id'])
  liar.on['message/send'] = () => ({ ...theirs, kind: 'task' })
  const sent = await call('message/send', saying('tells fables'))
  expect(sent.headers.get('x-agent')).toBe('liar')
  expect((await call('tasks/get', { task_id: theirs.id })).headers.get('x-agent')).toBe('board')
  const next = await call('message/send', saying('tells fables', { contextId: theirs.context_id }))
  expect(next.headers.get('x-agent')).toBe('board')
  expect(liar.sent('tasks/get')).toEqual([])
})

test('a task that an external agent returned belongs to it once no supervised agent has the task', async () => {
  const [board, liar] = [await agent('board', chess), await hostile()]
  const { id, context_id } = (await call('message/send', saying('tells fables'))).json.result
  freeze(board)
  expect(await call('tasks/get', { task_id: id })).toMatchObject(unavailable('board'))
  expect(liar.sent('tasks/get')).toEqual([])
  thaw(board)
  await expect
    .poll(async () => (await call('tasks/get', { task_id: id })).headers.get('x-agent'), { timeout: 20_000 })
    .toBe('liar')
  expect(
    (await call('message/send', saying('go on', { contextId: context_id }))).headers.get('x-agent'),
  ).toBe('liar')
  // No further lookup is needed, so a frozen agent delays nothing.
  freeze(board)
  expect((await call('tasks/get', { task_id: id })).headers.get('x-agent')).toBe('liar')
  const more = saying('go on', { contextId: context_id })
  expect((await call('message/send', more)).headers.get('x-agent')).toBe('liar')
})

test('a supervised agent that later receives a message with the id takes the task over from an external agent', async () => {
  const [board] = [await agent('board', chess), await hostile()]
  const { id } = (await call('message/send', saying('tells fables'))).json.result
  expect((await call('tasks/get', { task_id: id })).headers.get('x-agent')).toBe('liar')
  board.on['message/send'] = ({ params }) => ({ ...board.take(params), id, context_id: randomUUID() })
  await call('message/send', saying('best chess move'))
  board.on = { 'tasks/get': () => ({ id, context_id: randomUUID() }) }
  expect((await call('tasks/get', { task_id: id })).headers.get('x-agent')).toBe('board')
})
