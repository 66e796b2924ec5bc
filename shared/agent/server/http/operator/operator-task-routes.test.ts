import { setTimeout as wait } from 'node:timers/promises'
import { type OperatorGateway, startOperatorGateway } from '@parley/tools/testing/operator-gateway'
import { price, TestWallet } from '@parley/tools/testing/paid-agent'
import { type RawAnswer, raw } from '@parley/tools/testing/raw-http'
import {
  agentQueue,
  agentTaskDetail,
  agentTaskList,
  agentTaskRow,
} from '@parley/wire/codecs/answers/operator/tasks'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { type TestAgent, testAgent } from '../../../testing.ts'

let gateway: OperatorGateway
let agent: TestAgent
let logged: string[] = []
beforeAll(async () => {
  gateway = await startOperatorGateway()
  agent = await testAgent(
    {
      async *handle({ text, ask, usage, signal }) {
        if (text === 'question') return ask('Which city?')
        if (text === 'hang') await new Promise((resolve) => signal.addEventListener('abort', resolve))
        if (text === 'fail') throw new Error('broken')
        usage({ model: 'small', inputTokens: 12, outputTokens: 3 })
        yield 'The secret answer'
        return undefined
      },
    },
    {
      env: { GATEWAY_URL: gateway.url, LOG_LEVEL: 'info' },
      logTo: { write: (line) => void logged.push(line) },
    },
  )
})
beforeEach(() => {
  logged = []
})
afterAll(async () => {
  await agent[Symbol.asyncDispose]()
  await gateway[Symbol.asyncDispose]()
})

async function get(path: string, claims: object = {}, of = agent): Promise<RawAnswer> {
  const token = await gateway.sign(of.did, 'tasks.read', { claims })
  return raw(of, { path: `/operator/${path}`, method: 'GET', token })
}
const listed = async (query = '', claims: object = {}) =>
  agentTaskList.parse((await get(`tasks${query}`, claims)).json)
const detailOf = async (id: string, claims: object = {}) =>
  agentTaskDetail.parse((await get(`tasks/${id}`, claims)).json)
const cancel = async (id: string, claims: object = {}) =>
  raw(agent, {
    path: `/operator/tasks/${id}/cancel`,
    token: await gateway.sign(agent.did, 'tasks.cancel', { claims }),
  })
async function until(id: string, wanted: string): Promise<void> {
  const isIn = async () => (await detailOf(id)).state === wanted
  while (!(await isIn())) await wait(10)
}

test('the tasks of all owners are listed by status, newest first, with the fields of an operator’s row', async () => {
  const done = await agent.caller('alice').sendAndWait('hello')
  const asks = await agent.caller('bob').sendAndWait('question')
  const { tasks } = await listed('?limit=2')
  expect(tasks).toMatchObject([
    { task_id: asks.id, owner: 'bob', state: 'input-required', text: 'question', reason: 'Which city?' },
    { task_id: done.id, owner: 'alice', state: 'completed', text: 'hello', starts: 1, parent: null },
  ])
  expect(tasks[1]?.started_at).toMatch(/^20/)
  const first = await listed('?limit=1')
  expect((await listed(`?limit=1&cursor=${first.next_cursor}`)).tasks).toMatchObject([{ task_id: done.id }])
})

test('lists are filtered by owner, state, context, time, and whether tasks wait', async () => {
  const asks = await agent.caller('carol').sendAndWait('question')
  const done = await agent.caller('carol').sendAndWait('hello')
  const ids = async (query: string) => (await listed(query)).tasks.map(({ task_id }) => task_id)
  expect(await ids('?owner=carol')).toEqual([done.id, asks.id])
  expect(await ids('?owner=carol&state=completed,failed')).toEqual([done.id])
  expect(await ids('?owner=carol&state=unheard-of')).toEqual([])
  expect(await ids('?owner=carol&waiting=true')).toEqual([asks.id])
  expect(await ids(`?context=${done.context_id}`)).toEqual([done.id])
  const { since } = (await listed('?owner=carol')).tasks[0] ?? { since: '' }
  expect(await ids(`?owner=carol&since=${encodeURIComponent(since)}`)).toEqual([done.id])
  expect(await ids(`?owner=carol&until=${encodeURIComponent(since)}`)).toEqual([asks.id])
  expect((await get('tasks?limit=201')).json.error).toMatchObject({ code: -32602 })
  expect((await get('tasks?cursor=forged')).json.error).toMatchObject({ code: -32602 })
})

test('one task has its events, runs, usage, feedback and the whole task', async () => {
  const alice = agent.caller('alice')
  const { id } = await alice.sendAndWait('hello')
  await alice.call('tasks/feedback', { task_id: id, feedback: 'Thanks', rating: 5 })
  const detail = await detailOf(id)
  expect(detail).toMatchObject({
    task_id: id,
    message_count: 2,
    usage: { input_tokens: 12, output_tokens: 3, models: [] },
    feedback: { rating: 5, text: 'Thanks' },
    runs: [{ outcome: 'completed' }],
    webhooks: [],
    payments: [],
    children: [],
    task: { id, artifacts: [{ parts: [{ text: 'The secret answer' }] }] },
  })
  expect(detail.events.map(({ kind, state }) => state ?? kind)).toEqual([
    'working',
    'artifact-update',
    'completed',
  ])
  expect(detail.events.map(({ sequence }) => sequence)).toEqual([1, 2, 3])
  expect(detail.runs[0]?.started_at).toBe(detail.started_at)
  expect(detail.runs[0]?.ended_at).toBe(detail.since)
})

test('each start after a pause is a run', async () => {
  const alice = agent.caller('alice')
  const asked = await alice.sendAndWait('question')
  await alice.sendAndWait({ text: 'Paris', taskId: asked.id })
  expect((await detailOf(asked.id)).runs).toMatchObject([
    { outcome: 'input-required' },
    { outcome: 'completed' },
  ])
})

test('without texts, no text, artifact or payload of another owner leaves the agent', async () => {
  const alice = agent.caller('alice')
  const done = await alice.sendAndWait('a private message')
  const asked = await alice.sendAndWait('question')
  await alice.call('tasks/feedback', { task_id: done.id, feedback: 'private too', rating: 1 })
  const answers = [
    await get('tasks', { texts: false }),
    await get(`tasks/${done.id}`, { texts: false }),
    await get(`tasks/${asked.id}`, { texts: false }),
  ]
  for (const { status, text } of answers) {
    expect(status).toBe(200)
    expect(text).not.toMatch(/private|secret|Which city|question/)
  }
  const detail = await detailOf(done.id, { texts: false })
  expect(detail).toMatchObject({ text: null, reason: null, task: null, feedback: { rating: 1, text: null } })
  // A person sees the texts of their own tasks.
  expect(await detailOf(done.id, { texts: false, sub: 'alice' })).toMatchObject({ text: 'a private message' })
})

test('a statement for one owner returns only this owner’s tasks, with their texts', async () => {
  const { id } = await agent.caller('alice').sendAndWait('hello')
  const own = await agent.caller('dora').sendAndWait('my text')
  const claims = { sub: 'dora', owner: 'dora', texts: false }
  expect((await listed('', claims)).tasks).toMatchObject([
    { task_id: own.id, owner: 'dora', text: 'my text' },
  ])
  expect((await get('tasks?owner=alice', claims)).status).toBe(403)
  expect(await get(`tasks/${id}`, claims)).toMatchObject({ status: 404, json: { error: { code: -32001 } } })
  expect((await cancel(id, claims)).status).toBe(404)
  expect((await get('queue', claims)).status).toBe(403)
  expect((await get('tasks/none')).status).toBe(404)
})

test('an operator cancels a task of any owner; the status says so, and the audit log names the operator', async () => {
  const { id } = await agent.caller('alice').send('hang')
  await until(id, 'working')
  const answer = await cancel(id, { sub: 'root' })
  expect(agentTaskRow.parse(answer.json)).toMatchObject({
    task_id: id,
    state: 'canceled',
    reason: 'An operator canceled this task.',
  })
  const task = await agent.caller('alice').get(id)
  expect(task.status).toMatchObject({
    state: 'canceled',
    message: { parts: [{ text: 'An operator canceled this task.' }] },
  })
  const entries = logged.map((line) => JSON.parse(line) as object)
  expect(entries).toContainEqual(
    expect.objectContaining({
      audit: true,
      action: 'operator.cancel',
      who: 'root',
      target: id,
      allowed: true,
    }),
  )
  expect(await cancel(id)).toMatchObject({ status: 400, json: { error: { code: -32002 } } })
})

test('the queue counts the tasks of all owners by state', async () => {
  const hanging = [await agent.caller('alice').send('hang'), await agent.caller('bob').send('hang')]
  for (const { id } of hanging) await until(id, 'working')
  await vi.waitFor(async () =>
    expect(agentQueue.parse((await get('queue')).json)).toMatchObject({ queued: 0, running: 2 }),
  )
  const queue = agentQueue.parse((await get('queue')).json)
  expect(queue.waiting).toBeGreaterThan(0)
  expect(queue.ended['completed']).toBeGreaterThan(0)
  for (const { id } of hanging) await cancel(id)
})

test('a task that waits for a payment has the amount and the end of the pause, without the right to texts too', async () => {
  await using paid = await testAgent(
    {
      executionCost: { ...price, amount: '0' },
      handle: ({ text, history, requirePayment }) =>
        history.length === 1 ? requirePayment({ amount: '0.05', reason: 'page two' }) : `done: ${text}`,
    },
    { env: { GATEWAY_URL: gateway.url } },
  )
  const alice = paid.caller('alice')
  const before = Date.now()
  const { id: taskId } = await alice.sendAndWait('hello')
  const rowOf = async (query = '') =>
    agentTaskList.parse((await get(`tasks${query}`, { texts: false }, paid)).json).tasks[0]
  const row = await rowOf('?waiting=true')
  expect(row).toMatchObject({
    task_id: taskId,
    state: 'payment-required',
    reason: null,
    payment: {
      amount: '0.05',
      asset_name: price.extra?.name ?? 'USDC',
      network: price.network,
      sandbox: true,
    },
  })
  expect(Date.parse(row?.expires_at ?? '')).toBeGreaterThan(before + 3_600_000)
  const headers = await new TestWallet().header({ amount: '50000' })
  await alice.send({ text: 'go on', taskId }, undefined, { headers })
  await alice.wait(taskId)
  expect(await rowOf()).not.toHaveProperty('payment')
  expect(await rowOf()).not.toHaveProperty('expires_at')
})
