import {
  auditList,
  forgottenAnswer,
  learnedAnswer,
  verdictAnswer,
} from '@parley/wire/codecs/answers/operator/records'
import { beforeAll, expect, test } from 'vitest'
import { agent, bearer, call, gateway, gatewayForAllTests, restart, saying } from '../testing.ts'
import { judgedAgents } from './decision-routes.ts'

gatewayForAllTests()

const admin = 'agent:read agent:write agent:admin'
const weather = 'Weather forecast for any city'
let [decision, context] = ['', '']
let sky: Awaited<ReturnType<typeof agent>>
let board: Awaited<ReturnType<typeof agent>>

async function request(
  path: string,
  client: string,
  { scope, body, method = body ? 'POST' : 'GET' }: { scope?: string; body?: object; method?: string } = {},
) {
  const response = await fetch(`${gateway().addresses.public}${path}`, {
    method,
    headers: { authorization: bearer(client, scope), ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: response.status, json: (await response.json()) as unknown }
}

const judge = async (body: object, client = 'root', id = decision) => {
  const scope = client === 'root' ? admin : undefined
  return request(`/operator/decisions/${id}/feedback`, client, { body, ...(scope && { scope }) })
}
const answerTo = async (...given: Parameters<typeof judge>) =>
  verdictAnswer.parse((await judge(...given)).json)
const learned = async (slug: string) => {
  const { json } = await request(`/operator/agents/${slug}/learned`, 'root', { scope: admin })
  return learnedAnswer.parse(json)
}
const forget = (path: string) =>
  request(`/operator/agents/${path}`, 'root', { scope: admin, method: 'DELETE' })
async function ask(text: string) {
  const sent = await call('message/send', saying(text))
  return { id: sent.headers.get('x-negotiation-id') ?? '', context: sent.json.result.context_id as string }
}

beforeAll(async () => {
  sky = await agent('sky', weather)
  board = await agent('board', 'Plays chess, suggests the best move')
  const sent = await ask('weather forecasts for the city of Lisbon')
  decision = sent.id
  context = sent.context
})

test('a correction adds examples of the chosen and the right agent, and the words are not in the answer', async () => {
  const { status, json } = await judge({ verdict: 'wrong', right_agent: 'board' }, 'alice')
  expect(status).toBe(200)
  expect(verdictAnswer.parse(json)).toMatchObject({ learned: true, not_learned: null })
  expect(JSON.stringify(json)).not.toContain('lisbon')
  expect(await learned('sky')).toMatchObject({ agent: 'sky', examples: 1, positive: 0, negative: 1 })
  expect(await learned('board')).toMatchObject({
    learning: true,
    examples: 1,
    positive: 1,
    raises_score: false,
    missing: { examples: 3, callers: 0 },
    callers_total: 1,
    callers: [{ caller: expect.stringMatching(/^[\w-]{10}$/), positive: 1 }],
    words: { positive: expect.arrayContaining([{ word: 'lisbon', weight: 1 }]), negative: [] },
  })
})

test('a second verdict of the same person replaces the first, and that of an operator counts separately', async () => {
  expect((await answerTo({ verdict: 'right' }, 'alice')).learned).toBe(true)
  expect(await learned('board')).toMatchObject({ examples: 0, since: null })
  expect(await learned('sky')).toMatchObject({ examples: 1, positive: 1 })
  await judge({ verdict: 'wrong' })
  expect(await learned('sky')).toMatchObject({ examples: 2, positive: 1, negative: 1, callers_total: 2 })
})

test('a verdict about the decision of another owner is refused and adds no example', async () => {
  expect((await judge({ verdict: 'wrong', right_agent: 'board' }, 'mallory')).status).toBe(404)
  const weak = { scope: 'agent:read', body: { verdict: 'wrong' } }
  expect((await request(`/operator/decisions/${decision}/feedback`, 'alice', weak)).status).toBe(403)
  expect((await learned('board')).examples).toBe(0)
})

test.each([
  [{ verdict: 'wrong', right_agent: 'nothing' }, 'no agent with this name'],
  [{ verdict: 'wrong', right_agent: 'sky' }, 'is the agent that was chosen'],
  [{ verdict: 'right', right_agent: 'board' }, 'belongs to the verdict wrong'],
])('the verdict %j is refused with the next step and is not recorded', async (body, message) => {
  const { status, json } = await judge(body, 'alice')
  expect(status).toBe(400)
  const issues = [{ path: 'right_agent', message: expect.stringContaining(message) }]
  expect(json).toMatchObject({ error: { data: { issues } } })
  expect((await learned('sky')).callers_total).toBe(2)
})

test('an agent that took the name of the chosen agent later gets no example', () => {
  const entry = { id: 'e1', registeredAt: '2026-11-22T10:00:00.000500+00:00' }
  const all = { findIncludingLeft: () => entry }
  const none = { bySlug: () => undefined }
  const judged = (time: string) => {
    const at = Date.parse(time)
    const record = { id: 'd1', at, body: { method: 'message/send', chosen: 'sky' } }
    return judgedAgents(record, { verdict: 'wrong' }, { all, visible: none }).chosen
  }
  expect(judged('2026-11-22T10:00:00.000Z')).toBe('e1')
  expect(judged('2026-11-22T09:59:59.999Z')).toBeUndefined()
})

test('only operators see what was learned and may forget it', async () => {
  for (const method of ['GET', 'DELETE']) {
    expect((await request('/operator/agents/sky/learned', 'alice', { method })).status).toBe(403)
    expect((await request('/operator/agents/none/learned', 'root', { scope: admin, method })).status).toBe(
      404,
    )
  }
})

test.each(['$ne', 'abc', 'x'.repeat(23), 'a.*b', ''])('the caller %j is refused', async (caller) => {
  const answer = await forget(`sky/learned?caller=${encodeURIComponent(caller)}`)
  expect(answer.status).toBe(400)
})

test('the examples of one caller are forgotten by the beginning of its hash', async () => {
  const [first] = (await learned('sky')).callers.filter(({ negative }) => negative > 0)
  expect((await forget('sky/learned?caller=----')).status).toBe(404)
  const { json } = await forget(`sky/learned?caller=${first?.caller.slice(0, 6)}`)
  expect(forgottenAnswer.parse(json)).toEqual({ agent: 'sky', forgotten: 1 })
  expect(await learned('sky')).toMatchObject({ examples: 1, positive: 1, negative: 0 })
})

test('all examples of an agent are forgotten, which the audit log shows', async () => {
  expect((await forget('sky/learned')).json).toEqual({ agent: 'sky', forgotten: 1 })
  expect(await learned('sky')).toMatchObject({ examples: 0, callers: [] })
  const entries = async () => {
    const path = '/operator/audit?action=operator.forget_learned'
    const { json } = await request(path, 'root', { scope: admin })
    return auditList.parse(json).entries.flatMap(({ allowed, target }) => (allowed ? target : []))
  }
  await expect.poll(entries).toEqual(expect.arrayContaining(['sky']))
})

test('clearing the context of the task forgets its corrections', async () => {
  await judge({ verdict: 'wrong', right_agent: 'board' })
  expect((await learned('board')).examples).toBe(1)
  const cleared = await call('contexts/clear', { context_id: context })
  expect(cleared.json.error).toBeUndefined()
  expect((await learned('board')).examples).toBe(0)
  expect((await answerTo({ verdict: 'wrong', right_agent: 'board' })).not_learned).toBe('no_words')
})

test('without OPERATOR_READS_TEXTS the words are not shown, and with ROUTE_LEARNING=no nothing is learned', async () => {
  await restart({ OPERATOR_READS_TEXTS: 'no' })
  await sky.register('sky', weather)
  await board.register('board', 'Plays chess')
  const { id } = await ask('weather forecast for Rome')
  expect((await answerTo({ verdict: 'wrong' }, 'alice', id)).learned).toBe(true)
  expect(await learned('sky')).toMatchObject({ negative: 1, words: null })
  await restart({ ROUTE_LEARNING: 'no' })
  await sky.register('sky', weather)
  const sent = await ask('weather forecast for Rome')
  expect(await answerTo({ verdict: 'wrong' }, 'alice', sent.id)).toMatchObject({
    learned: false,
    not_learned: 'learning_off',
    feedback: [{ verdict: 'wrong' }],
  })
  expect(await learned('sky')).toMatchObject({ learning: false, negative: 1, raises_score: false })
})
