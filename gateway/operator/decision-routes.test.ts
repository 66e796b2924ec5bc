import { decisionDetail, decisionList } from '@parley/wire/codecs/answers/operator/records'
import { beforeAll, expect, test } from 'vitest'
import { agent, bearer, call, gateway, gatewayForAllTests, restart, saying } from '../testing.ts'

gatewayForAllTests()

const admin = 'agent:read agent:admin'
const weather = 'Weather forecast for any city'
let [mine, theirs, task] = ['', '', '']
let sky: Awaited<ReturnType<typeof agent>>

async function request(
  path: string,
  client: string,
  { scope, body }: { scope?: string; body?: object } = {},
) {
  const response = await fetch(`${gateway().addresses.public}${path}`, {
    headers: { authorization: bearer(client, scope), 'content-type': 'application/json' },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  })
  return { status: response.status, json: (await response.json()) as Record<string, unknown> }
}

async function list(query: string, client = 'root', scope = admin) {
  const { json } = await request(`/operator/decisions${query}`, client, { scope })
  return decisionList.parse(json)
}
const idsOf = async (query: string, client?: string, scope?: string) =>
  (await list(query, client, scope)).decisions.map(({ id }) => id)

beforeAll(async () => {
  sky = await agent('sky', weather)
  await agent('board', 'Plays chess, suggests the best move')
  await agent('closed', weather, { admitted: false })
  const sent = await call('message/send', saying('weather forecast for <b>Paris</b> \u202e'))
  mine = sent.headers.get('x-negotiation-id') ?? ''
  task = sent.json.result.id
  const other = { authorization: bearer('bob') }
  theirs =
    (await call('message/send', saying('the best move in chess'), other)).headers.get('x-negotiation-id') ??
    ''
  await call('message/send', saying('zzqx brrrgl'), other)
})

test('an operator lists all decisions, newest first, with task, scores and text', async () => {
  const { decisions, next_cursor } = await list('')
  expect(decisions.map(({ outcome, owner }) => [outcome, owner])).toEqual([
    ['none', 'bob'],
    ['accepted', 'bob'],
    ['accepted', 'alice'],
  ])
  expect(decisions[2]).toMatchObject({
    id: mine,
    chosen: 'sky',
    method: 'message/send',
    task_id: task,
    score: expect.any(Number),
    excluded_total: 1,
    trace_id: null,
    text: 'weather forecast for <b>Paris</b> \u202e',
    verdicts: 0,
  })
  expect(next_cursor).toBeNull()
})

test.each([
  ['?agent=sky', () => [mine]],
  ['?owner=alice', () => [mine]],
  [`?q=forecast%20PARIS`, () => [mine]],
  [`?q=%24where`, () => []],
  ['?outcome=accepted', () => [theirs, mine]],
  ['?outcome=rejected', () => []],
  ['?until=2026-01-01T00:00:00Z', () => []],
  ['?task=none', () => []],
])('the decisions with %s', async (query, expected) => {
  expect(await idsOf(query)).toEqual(expected())
})

test('a task leads to its decision, and a decision to its task', async () => {
  expect(await idsOf(`?task=${task}`)).toEqual([mine])
  expect(await idsOf(`?task=${task}&owner=bob`)).toEqual([])
})

test('pages continue where the previous one ended, only for the same caller and filters', async () => {
  const first = await list('?limit=1')
  const second = await list(`?limit=1&cursor=${first.next_cursor}`)
  const third = await list(`?limit=5&cursor=${second.next_cursor}`)
  expect([...second.decisions, ...third.decisions].map(({ id }) => id)).toEqual([theirs, mine])
  expect(third.next_cursor).toBeNull()
  for (const path of [`?agent=sky&cursor=${first.next_cursor}`, '?cursor=x', '?limit=0', '?limit=201'])
    expect((await request(`/operator/decisions${path}`, 'root', { scope: admin })).status).toBe(400)
  expect((await request(`/operator/decisions?cursor=${first.next_cursor}`, 'bob')).status).toBe(400)
})

test('a caller sees only its own decisions', async () => {
  expect(await idsOf('', 'alice', 'agent:read')).toEqual([mine])
  expect(await idsOf('?owner=bob', 'alice', 'agent:read')).toEqual([])
  expect((await request(`/operator/decisions/${theirs}`, 'alice')).status).toBe(404)
  expect((await request(`/operator/decisions/${mine}`, 'alice')).status).toBe(200)
  expect((await request('/operator/decisions', 'alice', { scope: 'agent:write' })).status).toBe(403)
})

test('a decision shows its candidates with sub-scores and reasons, its exclusions, weights and what was tried', async () => {
  const { json } = await request(`/operator/decisions/${mine}`, 'root', { scope: admin })
  const decision = decisionDetail.parse(json)
  expect(decision.record).toMatchObject({
    chosen: 'sky',
    tried: [{ agent: 'sky', outcome: 'answered' }],
    excluded: [{ agent: 'closed', rule: 'not admitted' }],
    asked: { task_summary: expect.stringContaining('Paris') },
  })
  expect(decision.record.candidates[0]).toMatchObject({
    agent: { slug: 'sky' },
    subscores: { skill_match: expect.any(Number) },
    reasons: expect.arrayContaining([expect.any(String)]),
  })
  expect(decision.weights).toMatchObject({ skill_match: 0.55 })
  expect(decision.feedback).toEqual([])
})

test('feedback of several people is kept with the decision, and each person has one verdict', async () => {
  const path = `/operator/decisions/${theirs}/feedback`
  const wrong = { verdict: 'wrong', right_agent: 'sky', comment: '<script>\u0000' }
  const statuses = await Promise.all([
    request(path, 'bob', { body: wrong }),
    request(path, 'root', { scope: admin, body: { verdict: 'right' } }),
    request(path, 'alice', { body: wrong }),
  ])
  expect(statuses.map(({ status }) => status)).toEqual([200, 200, 404])
  const last = await request(path, 'bob', { body: { verdict: 'right' } })
  const { feedback } = decisionDetail.parse(last.json)
  expect(feedback.map(({ by, verdict }) => `${by} ${verdict}`).toSorted()).toEqual([
    'bob right',
    'root right',
  ])
  expect((await list('?agent=board')).decisions[0]?.verdicts).toBe(2)
})

test.each([
  ['an unknown verdict', { verdict: 'maybe' }],
  ['a comment that is too long', { verdict: 'wrong', comment: 'x'.repeat(2001) }],
  ['no verdict', {}],
])('feedback with %s is refused', async (_what, body) => {
  const path = `/operator/decisions/${mine}/feedback`
  expect((await request(path, 'root', { scope: admin, body })).status).toBe(400)
})

test('without OPERATOR_READS_TEXTS, no text of a decision is stored', async () => {
  await restart({ OPERATOR_READS_TEXTS: 'no' })
  await sky.register('sky', weather)
  const sent = await call('message/send', saying('weather forecast for Rome'))
  const id = sent.headers.get('x-negotiation-id') ?? ''
  expect((await list('?limit=1')).decisions[0]).toMatchObject({ id, text: null })
  expect((await list('?owner=alice')).decisions.map(({ text }) => text)).toEqual([null, null])
  expect(await idsOf('?q=rome')).toEqual([])
  const own = await list('', 'alice', 'agent:read')
  expect(own.decisions.map(({ text }) => text)).toEqual([null, expect.stringContaining('Paris')])
})
