import { taskDetail, taskList } from '@parley/wire/codecs/answers/operator/tasks'
import { beforeAll, expect, test } from 'vitest'
import {
  agent,
  bearer,
  call,
  FakeAgent,
  fail,
  gateway,
  gatewayForAllTests,
  post,
  restart,
  saying,
} from '../../testing.ts'
import { agentWith, detail, row, timeOf } from './testing.ts'

gatewayForAllTests()

const admin = 'agent:read agent:write agent:admin'
let [sky, sea, far]: FakeAgent[] = []

const payment = {
  payment_id: 'p1',
  state: 'settled',
  amount: '0.05',
  asset: '0x1',
  asset_name: 'USDC\u202e',
  network: 'eip155:84532',
  payer: null,
  tx_hash: null,
  created_at: timeOf(6),
  completed_at: timeOf(7),
}

const webhook = {
  config_id: 'w1',
  url: 'https://hooks.example/secret',
  dialect: null,
  state: 'failing' as const,
  settled: 0,
  events: 1,
  attempts: 1,
  delivered: 0,
  dropped: {},
  last_status: null,
  last_error: null,
  last_attempt_at: null,
}

async function request(path: string, client = 'root', scope = admin, method = 'GET') {
  const response = await fetch(`${gateway().addresses.public}${path}`, {
    method,
    headers: { authorization: bearer(client, scope) },
  })
  // oxlint-disable-next-line typescript/no-explicit-any -- the test checks the forms
  const json: any = await response.json()
  return { status: response.status, json }
}
async function list(query = '', client?: string, scope?: string) {
  const { json } = await request(`/operator/tasks${query}`, client, scope)
  const { tasks, ...page } = taskList.parse(json)
  return { ...page, tasks, ids: tasks.map(({ agent: slug, task_id: id }) => `${slug} ${id}`) }
}

beforeAll(async () => {
  sky = await agentWith('sky', [
    detail('s5', 5, {
      parent: { agent: 'sea', task_id: 'm4' },
      webhooks: Array.from({ length: 12 }, (_, number) => ({
        ...webhook,
        config_id: `w${number}`,
        last_attempt_at: timeOf(number),
      })),
      payments: [payment],
    }),
    detail('s3', 3, {
      owner: 'bob',
      text: '\u001b[31mred\u202e',
      feedback: { rating: 1, text: 'Thanks', at: timeOf(3) },
      webhooks: [webhook],
      children: [{ agent: 'sky', task_id: 's1' }],
    }),
    detail('s1', 1, { webhooks: [webhook] }),
  ])
  sea = await agentWith('sea', [
    detail('m4', 4, { children: [{ agent: 'sky', task_id: 's5' }, { agent: 'gone', task_id: 'x' }, {}] }),
    row('m2', 2, { owner: 'alice\u001Fsky', state: 'input-required', reason: 'Which one?' }),
  ])
  await agent('lawless', 'Answers with another form').then(
    (one) => (one.get = () => ({ tasks: [{ task_id: 1 }] })),
  )
  far = await agent('far', 'An external agent that counts the stars', { origin: 'registered' })
  await call('message/send', saying('count the stars far away'), { authorization: bearer('carol') })
})

test('an operator lists the tasks of all agents and owners, newest first, page by page', async () => {
  const first = await list('?limit=2&until=2026-11-22T13:00:00Z')
  expect(first.ids).toEqual(['sky s5', 'sea m4'])
  const cursor = `&cursor=${first.next_cursor}`
  const second = await list(`?limit=2&until=2026-11-22T13:00:00Z${cursor}`)
  expect(second.ids).toEqual(['sky s3', 'sea m2'])
  const last = await list(`?limit=2&until=2026-11-22T13:00:00Z&cursor=${second.next_cursor}`)
  expect([last.ids, last.next_cursor]).toEqual([['sky s1'], null])
})

test('an agent that answers in another form is unread, and the others are listed', async () => {
  const { unread } = await list('?limit=2')
  expect(unread).toEqual([{ agent: 'lawless', reason: expect.stringContaining('lawless') }])
})

test('a cursor is refused for another caller and for another query', async () => {
  const { next_cursor: cursor } = await list('?limit=1')
  const refused = { status: 400, json: { error: { code: -32602 } } }
  expect(await request(`/operator/tasks?limit=1&cursor=${cursor}`, 'eve')).toMatchObject(refused)
  expect(await request(`/operator/tasks?limit=1&state=failed&cursor=${cursor}`)).toMatchObject(refused)
})

test('a caller sees only its own tasks and those that agents created for it', async () => {
  const { ids } = await list('', 'alice', 'agent:read')
  expect(ids).toEqual(['sky s5', 'sea m4', 'sea m2', 'sky s1'])
  expect((await list('?owner=bob', 'alice', 'agent:read')).ids).toEqual([])
  expect(await request('/operator/tasks/s3', 'alice', 'agent:read')).toMatchObject({ status: 503 })
  expect(await request('/operator/tasks/s3?agent=sky', 'alice', 'agent:read')).toMatchObject({ status: 404 })
})

test('texts of agents contain no control characters', async () => {
  const { tasks } = await list('?agent=sky')
  expect(tasks.map(({ text }) => text)).toContain('red')
})

test('the filters are sent to the agents, and an agent that does not exist is not found', async () => {
  expect((await list('?state=input-required')).ids).toEqual(['sea m2'])
  expect(await request('/operator/tasks?agent=none')).toMatchObject({ status: 404 })
})

test('a task of an external agent is listed with what the gateway recorded', async () => {
  const { tasks } = await list('?agent=far')
  expect(far!.sent()).toHaveLength(1)
  expect(tasks).toMatchObject([
    { agent: 'far', owner: 'carol', state: 'unknown', recorded_only: true, text: null },
  ])
  const id = tasks[0]?.task_id
  const { json } = await request(`/operator/tasks/${id}?agent=far`)
  expect(taskDetail.parse(json)).toMatchObject({
    task_id: id,
    recorded_only: true,
    decision_id: expect.any(String),
  })
  expect((await list('?agent=far', 'alice', 'agent:read')).ids).toEqual([])
  expect(await request(`/operator/tasks/${id}/cancel?agent=far`, 'root', admin, 'POST')).toMatchObject({
    status: 400,
    json: { error: { data: { reason: 'external_agent' } } },
  })
})

test('a task is found at its agent, with its chain over all agents and the skew of their clocks', async () => {
  const { json } = await request('/operator/tasks/s5')
  const read = taskDetail.parse(json)
  expect(read).toMatchObject({ agent: 'sky', task_id: 's5', decision_id: null, task: { id: 's5' } })
  expect(read.chain.map(({ agent: slug, task_id: id, parent_id: parent }) => [slug, id, parent])).toEqual([
    ['sea', 'm4', null],
    ['sky', 's5', 'm4'],
  ])
  expect(Object.keys(read.clock_skew_ms)).toEqual(['sea', 'sky'])
  expect(read.clock_skew_ms['sky']).toBeGreaterThan(50_000)
})

test('the chain has the payments and the webhooks with the latest attempts of each task', async () => {
  const { json } = await request('/operator/tasks/m4', 'alice', 'agent:read')
  const [opened, child] = taskDetail.parse(json).chain
  expect(opened).toMatchObject({ task_id: 'm4', webhooks: [], payments: [] })
  expect(child?.webhooks.map(({ config_id: id }) => id)).toEqual(
    Array.from({ length: 10 }, (_, number) => `w${11 - number}`),
  )
  expect(child?.webhooks[0]).toMatchObject({
    url: 'https://hooks.example/secret',
    last_attempt_at: timeOf(11),
  })
  expect(child?.payments).toEqual([
    {
      payment_id: 'p1',
      state: 'settled',
      amount: '0.05',
      asset_name: 'USDC',
      created_at: timeOf(6),
      completed_at: timeOf(7),
    },
  ])
})

test('the chain of an operator’s own task has no receiver addresses of others, that of a caller no tasks of others', async () => {
  const { chain } = taskDetail.parse((await request('/operator/tasks/s3?agent=sky', 'bob')).json)
  expect(chain.map(({ task_id: id, webhooks }) => [id, webhooks[0]?.url])).toEqual([
    ['s3', 'https://hooks.example/secret'],
    ['s1', 'https://hooks.example/…'],
  ])
  const { json } = await request('/operator/tasks/s3?agent=sky', 'bob', 'agent:read')
  expect(taskDetail.parse(json).chain.map(({ task_id: id }) => id)).toEqual(['s3'])
})

test('of two cancellations, one is refused because the task has ended', async () => {
  let canceled = 0
  sky!.on['/operator/tasks/s5/cancel'] = ({ response }) => {
    canceled += 1
    if (canceled > 1) return fail(response, null, 400, -32002, {})
    return void response.end(JSON.stringify({ task_id: 's5', state: 'canceled' }))
  }
  const both = [1, 2].map(() => request('/operator/tasks/s5/cancel', 'root', admin, 'POST'))
  const answers = (await Promise.all(both)).sort((a, b) => a.status - b.status)
  expect(answers).toMatchObject([
    { status: 200, json: { agent: 'sky', task_id: 's5', state: 'canceled' } },
    { status: 400, json: { error: { code: -32002 } } },
  ])
  const readOnly = await request('/operator/tasks/s5/cancel', 'alice', 'agent:read', 'POST')
  expect(readOnly.status).toBe(403)
})

test('an agent that does not respond is unread, and the others are listed', async () => {
  const { get } = sea!
  sea!.get = () => 'later'
  const { ids, unread } = await list('?until=2026-11-22T13:00:00Z')
  sea!.get = get
  expect(ids).toEqual(['sky s5', 'sky s3', 'sky s1'])
  expect(unread.map(({ agent: slug }) => slug).sort()).toEqual(['lawless', 'sea'])
})

test('a request without a token, without a scope or of an agent for a caller is refused', async () => {
  const { status } = await fetch(`${gateway().addresses.public}/operator/tasks`)
  expect(status).toBe(401)
  expect((await request('/operator/tasks', 'alice', 'agent:write')).status).toBe(403)
})

test('without OPERATOR_READS_TEXTS, an operator sees no texts of others, and its own', async () => {
  await restart({ OPERATOR_READS_TEXTS: 'no' })
  await sky!.register('sky', 'The agent sky')
  const { tasks, ids } = await list('?agent=sky')
  expect(ids).toEqual(['sky s5', 'sky s3', 'sky s1'])
  expect(tasks.map(({ text }) => text)).toEqual([null, null, null])
  const { json } = await request('/operator/tasks/s3?agent=sky')
  expect(json).toMatchObject({
    owner: 'bob',
    text: null,
    task: null,
    signatures: [],
    feedback: { rating: 1, text: null },
    webhooks: [{ url: 'https://hooks.example/…' }],
  })
  expect(json.chain[0].webhooks).toMatchObject([{ url: 'https://hooks.example/…' }])
  expect(json.events).toEqual([{ sequence: 1, at: timeOf(3), kind: 'status-update', state: 'working' }])
  expect(await request('/operator/tasks/s5?agent=sky', 'alice')).toMatchObject({
    status: 200,
    json: { owner: 'alice', text: 'text of s5', task: { id: 's5' } },
  })
})

test('of many agents, a caller’s lists read those to which it has sent messages by name', async () => {
  const crowd = new FakeAgent()
  crowd.get = () => ({ tasks: [], next_cursor: null })
  for (let number = 0; number < 55; number += 1)
    await crowd.register(`crowd-${number}`, `Member ${number} of a crowd`)
  const zeta = await agentWith('zeta', [row('z1', 1, { owner: 'dave' })])
  const idsOf = async () => (await list('', 'dave', 'agent:read')).ids
  expect(await idsOf()).toEqual([])
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: saying('hello') })
  const sent = await post(`/agents/${zeta.slug}/`, body, { authorization: bearer('dave') })
  expect(sent.status).toBe(200)
  await expect.poll(idsOf).toEqual(['zeta z1'])
})
