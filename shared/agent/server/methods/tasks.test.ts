import { randomUUID } from 'node:crypto'
import { RpcError } from '@parley/client/internal/rpc-error'
import { rpc } from '@parley/tools/testing/raw-http'
import { taskIdOfKey } from '@parley/wire/model/chosen-task-id'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

let agent: TestAgent
beforeAll(async () => {
  agent = await testAgent({
    handle: async ({ text, ask, signal, history }) => {
      if (text === 'ask' && history.length === 1) return ask('what?')
      if (text === 'wait') await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return text
    },
  })
})
afterAll(() => agent[Symbol.asyncDispose]())

const owner = () => agent.caller(`owner-${randomUUID()}`)
const failure = (
  call: Promise<unknown>,
): Promise<{ code: number; status: number; message: string; data: object }> =>
  call.then(
    () => Promise.reject(new Error('it was answered')),
    ({ code, status, message, data }: RpcError) => ({ code, status, message, data }),
  )

test.each(['task_id', 'taskId', 'id'])('tasks/get reads the id as %s', async (name) => {
  const alice = owner()
  const task = await alice.sendAndWait('hello')
  expect(await alice.call('tasks/get', { [name]: task.id })).toEqual(task)
  expect(task).toMatchObject({
    status: { state: 'completed' },
    artifacts: [{ name: 'result', parts: [{ kind: 'text', text: 'hello' }] }],
  })
})

test('tasks/get returns as many of the last messages as history_length states, or all without it', async () => {
  const alice = owner()
  const { id, history } = await alice.sendAndWait('hello')
  expect(history).toHaveLength(2)
  for (const [length, expected] of [
    [0, []],
    [1, history.slice(1)],
    [2, history],
    [99, history],
  ] as const) {
    expect((await alice.get(id, { historyLength: length })).history).toEqual(expected)
  }
  expect(((await alice.call('tasks/get', { id, historyLength: 1 })) as { history: [] }).history).toHaveLength(
    1,
  )
})

test.each([
  {},
  { task_id: 'x' },
  { task_id: 7 },
  { task_id: null },
  { id: [] },
  { task_id: randomUUID(), history_length: -1 },
  { task_id: randomUUID(), history_length: '1' },
  { task_id: randomUUID(), history_length: 1.5 },
])('tasks/get with %j receives -32602 with issues', async (params) => {
  const { status, json } = await rpc(agent, 'tasks/get', params)
  expect([status, json.error]).toMatchObject([400, { code: -32602, data: { issues: [expect.any(Object)] } }])
})

const taskMethods: [string, object][] = [
  ['tasks/get', {}],
  ['tasks/cancel', {}],
  ['tasks/feedback', { feedback: 'good' }],
  ['tasks/resubscribe', {}],
  ['tasks/resubscribe', { after_sequence: 0 }],
]

test.each(taskMethods)(
  '%s %j reports a task of another owner like a missing task, with the same code, text and data',
  async (method, more) => {
    const [alice, eve] = [owner(), owner()]
    const ended = await alice.sendAndWait('hello')
    const running = await alice.send('wait')
    const missing = randomUUID()
    const expected = { code: -32001, status: 404, message: 'Task not found' }
    for (const id of [ended.id, running.id, missing]) {
      expect(await failure(eve.call(method, { task_id: id, ...more }))).toEqual({
        ...expected,
        data: { taskId: id },
      })
    }
    expect((await alice.cancel(running.id)).status.state).toBe('canceled')
  },
)

test('tasks/list returns only the tasks of the caller, newest first', async () => {
  const [alice, eve] = [owner(), owner()]
  const ids: string[] = []
  for (const text of ['a', 'b', 'c']) ids.unshift((await alice.send(text)).id)
  expect((await alice.list()).map(({ id }) => id)).toEqual(ids)
  expect(await eve.list()).toEqual([])
})

test('tasks/list contains the creation time of each task, which a later change of state does not modify', async () => {
  const alice = owner()
  const running = await alice.send('wait')
  const createdAt = async () =>
    ((await alice.list()) as unknown as { created_at: string }[]).map(({ created_at }) => created_at)
  const before = await createdAt()
  expect(before).toEqual([expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/)])
  await alice.cancel(running.id)
  expect(await createdAt()).toEqual(before)
})

test('tasks/list returns every task once in pages, with a cursor in X-Next-Cursor except on the last page', async () => {
  const alice = owner()
  const ids: string[] = []
  for (let i = 0; i < 7; i += 1) ids.unshift((await alice.send(`${i}`)).id)
  const seen: string[] = []
  let cursor: string | null = null
  do {
    const page = await alice.request('tasks/list', { limit: 3, ...(cursor === null ? {} : { cursor }) })
    seen.push(...(page.result as { id: string }[]).map(({ id }) => id))
    cursor = page.headers.get('x-next-cursor')
  } while (cursor !== null)
  expect(seen).toEqual(ids)
})

test('a cursor is valid only for its owner and its list, and any other text is -32602', async () => {
  const [alice, eve] = [owner(), owner()]
  await alice.send('a')
  await alice.send('b')
  const cursor = (await alice.request('tasks/list', { limit: 1 })).headers.get('x-next-cursor') as string
  const refused = { code: -32602, status: 400 }
  expect(await failure(eve.call('tasks/list', { cursor }))).toMatchObject(refused)
  expect(await failure(alice.call('contexts/list', { cursor }))).toMatchObject(refused)
  for (const text of ['', 'x', `A${cursor}`, cursor.slice(1), '0', 'a'.repeat(2000)])
    expect(await failure(alice.call('tasks/list', { cursor: text }))).toMatchObject(refused)
})

test('tasks/list filters by context and state', async () => {
  const alice = owner()
  const done = await alice.sendAndWait('a')
  const asking = await alice.sendAndWait('ask')
  const idsWith = async (params: object) =>
    ((await alice.call('tasks/list', params)) as { id: string }[]).map(({ id }) => id)
  expect(await idsWith({ context_id: done.context_id })).toEqual([done.id])
  expect(await idsWith({ state: 'input-required' })).toEqual([asking.id])
  expect(await idsWith({ contextId: done.context_id, state: 'input-required' })).toEqual([])
  expect(await idsWith({ state: 'failed' })).toEqual([])
})

test.each([
  { limit: 0 },
  { limit: 1001 },
  { limit: '5' },
  { limit: 1.5 },
  { state: 'done' },
  { context_id: 'x' },
  { cursor: 5 },
])('tasks/list with %j receives -32602', async (params) => {
  expect((await rpc(agent, 'tasks/list', params)).json.error.code).toBe(-32602)
})

test('tasks/cancel returns the task in `canceled`; a second call receives -32002 and changes nothing', async () => {
  const alice = owner()
  const task = await alice.send('wait')
  const canceled = await alice.cancel(task.id)
  expect(canceled).toMatchObject({ id: task.id, status: { state: 'canceled' }, artifacts: [] })
  expect(await failure(alice.cancel(task.id))).toMatchObject({
    code: -32002,
    status: 400,
    data: { taskId: task.id },
  })
  expect(await alice.get(task.id)).toEqual(canceled)
})

test('tasks/cancel refuses a completed task and cancels a paused task', async () => {
  const alice = owner()
  const done = await alice.sendAndWait('hello')
  expect(await failure(alice.cancel(done.id))).toMatchObject({ code: -32002 })
  expect(await alice.get(done.id)).toEqual(done)
  const asking = await alice.sendAndWait('ask')
  expect((await alice.cancel(asking.id)).status).toEqual({ state: 'canceled', timestamp: expect.any(String) })
})

test('tasks/feedback is recorded, and a second call replaces it; the task does not change', async () => {
  const alice = owner()
  const task = await alice.sendAndWait('hello')
  for (const rating of [1, 5]) {
    const answer = await alice.call('tasks/feedback', {
      task_id: task.id,
      feedback: `rated ${rating}`,
      rating,
      metadata: { a: 1 },
    })
    expect(answer).toEqual({ success: true, task_id: task.id, message: expect.any(String) })
  }
  expect(await alice.get(task.id)).toEqual(task)
  const [{ owner: ownerId } = { owner: '' }] = [await agent.app.services.store.loadTask(task.id)].filter(
    (found) => found !== undefined,
  )
  expect(await agent.app.services.store.findFeedback(task.id, ownerId)).toMatchObject({
    feedback: 'rated 5',
    rating: 5,
  })
})

test.each([
  {},
  { feedback: 5 },
  { feedback: 'x', rating: 0 },
  { feedback: 'x', rating: 6 },
  { feedback: 'x', rating: 2.5 },
  { feedback: 'x', rating: '5' },
  { feedback: 'x', metadata: 'y' },
])('tasks/feedback with %j receives -32602', async (params) => {
  expect((await rpc(agent, 'tasks/feedback', { task_id: randomUUID(), ...params })).json.error.code).toBe(
    -32602,
  )
})

test('contexts/list returns the contexts of the caller with their tasks, latest change first', async () => {
  const [alice, eve] = [owner(), owner()]
  const first = await alice.sendAndWait('a')
  const second = await alice.sendAndWait('b')
  const third = await alice.sendAndWait({ text: 'c', contextId: first.context_id })
  const time = expect.stringMatching(/\.\d{6}\+00:00$/)
  const common = {
    kind: 'context',
    role: 'user',
    created_at: time,
    updated_at: time,
    status: expect.any(String),
  }
  const ids = [first.id, third.id]
  expect(await alice.call('contexts/list')).toEqual([
    { ...common, context_id: first.context_id, task_count: 2, task_ids: ids, tasks: ids },
    { ...common, context_id: second.context_id, task_count: 1, task_ids: [second.id], tasks: [second.id] },
  ])
  expect(await eve.call('contexts/list')).toEqual([])
  const page = await alice.request('contexts/list', { limit: 1 })
  const rest = await alice.request('contexts/list', { limit: 1, cursor: page.headers.get('x-next-cursor') })
  expect((rest.result as { context_id: string }[])[0]?.context_id).toBe(second.context_id)
  expect(rest.headers.get('x-next-cursor')).toBeNull()
})

test('contexts/clear removes a context with its ended tasks, and is -32021 while a task runs', async () => {
  const [alice, eve] = [owner(), owner()]
  const task = await alice.send('wait')
  const context = { context_id: task.context_id }
  expect(await failure(alice.call('contexts/clear', context))).toMatchObject({
    code: -32021,
    status: 400,
    data: { contextId: task.context_id },
  })
  const missing = { code: -32020, status: 404, message: 'Context not found' }
  expect(await failure(eve.call('contexts/clear', context))).toEqual({
    ...missing,
    data: { contextId: task.context_id },
  })
  const unknown = randomUUID()
  expect(await failure(eve.call('contexts/clear', { contextId: unknown }))).toEqual({
    ...missing,
    data: { contextId: unknown },
  })
  await alice.cancel(task.id)
  expect(await alice.call('contexts/clear', context)).toEqual({
    success: true,
    ...context,
    message: expect.any(String),
  })
  expect(await failure(alice.get(task.id))).toMatchObject({ code: -32001 })
  expect(await alice.call('contexts/list')).toEqual([])
  expect(await failure(alice.call('contexts/clear', context))).toMatchObject({ code: -32020 })
})

test('contexts/clear treats a paused task as not ended', async () => {
  const alice = owner()
  const task = await alice.sendAndWait('ask')
  expect(await failure(alice.call('contexts/clear', { context_id: task.context_id }))).toMatchObject({
    code: -32021,
  })
})

test.each([{}, { context_id: 'x' }, { context_id: null }])(
  'contexts/clear with %j receives -32602',
  async (params) => {
    expect((await rpc(agent, 'contexts/clear', params)).json.error.code).toBe(-32602)
  },
)

test('agent/getAuthenticatedExtendedCard returns the card with its additions, or -32007 if there are none', async () => {
  const { status, json } = await rpc(agent, 'agent/getAuthenticatedExtendedCard')
  expect([status, json.error.code]).toEqual([400, -32007])
  const more = { id: 'hidden', name: 'Hidden', description: 'For those who know' }
  await using other = await testAgent({
    handle: () => 'x',
    extendedCard: { description: 'More', skills: [more], note: 1 },
  })
  const answer = (await rpc(other, 'agent/getAuthenticatedExtendedCard')).json.result
  expect(answer).toMatchObject({
    description: 'More',
    note: 1,
    did: other.did,
    skills: [{ id: 'test' }, { id: 'hidden' }],
  })
})

/** A task id that is derived from an `Idempotency-Key`. */
function chosen() {
  const key = randomUUID()
  return { taskId: taskIdOfKey(key), options: { headers: { 'idempotency-key': key } } }
}

test('the cancellation of a task that does not exist yet refuses its message', async () => {
  const [alice, mallory] = [owner(), owner()]
  const { taskId, options } = chosen()
  const canceled = await alice.cancel(taskId, options)
  expect(canceled).toMatchObject({ id: taskId, status: { state: 'canceled' }, history: [], artifacts: [] })
  expect(await alice.get(taskId)).toEqual(canceled)
  expect(await failure(alice.cancel(taskId, options))).toMatchObject({ code: -32002 })
  const message = { role: 'user', kind: 'message', messageId: randomUUID(), taskId } as const
  const parts = [{ kind: 'text' as const, text: 'hello' }]
  for (const more of [options, {}])
    expect(await failure(alice.send({ ...message, parts }, undefined, more))).toMatchObject({ code: -32008 })
  expect(await failure(mallory.get(taskId))).toMatchObject({ code: -32001 })
  expect(await failure(mallory.cancel(taskId, options))).toMatchObject({ code: -32001 })
  const { events } = await alice.events(taskId)
  expect(events).toMatchObject([{ kind: 'status-update', status: { state: 'canceled' }, final: true }])
})

test('without the key from which the id is derived, the cancellation of an unknown task has no effect', async () => {
  const alice = owner()
  const { taskId, options } = chosen()
  expect(await failure(alice.cancel(taskId))).toMatchObject({ code: -32001 })
  expect(await failure(alice.cancel(taskId, chosen().options))).toMatchObject({ code: -32001 })
  expect(await failure(alice.cancel(randomUUID(), options))).toMatchObject({ code: -32001 })
  expect(await failure(alice.get(taskId))).toMatchObject({ code: -32001 })
})

test('a message and its cancellation at the same time leave one canceled task', async () => {
  const alice = owner()
  for (let round = 0; round < 20; round += 1) {
    const { taskId, options } = chosen()
    const parts = [{ kind: 'text' as const, text: 'wait' }]
    const message = { role: 'user', kind: 'message', messageId: randomUUID(), taskId, parts } as const
    const [, canceled] = await Promise.allSettled([
      alice.send(message, undefined, options),
      alice.cancel(taskId, options),
    ])
    expect(canceled.status).toBe('fulfilled')
    expect((await alice.get(taskId)).status.state).toBe('canceled')
  }
})
