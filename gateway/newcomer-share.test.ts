import { price } from '@parley/tools/testing/paid-agent'
import { expect, test } from 'vitest'
import { agent, bearer, call, gateway, gatewayForEachTest, post, saying } from './testing.ts'

gatewayForEachTest({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1' })

const sums = 'Calculates sums and products of numbers'
const little = 'Numbers of many kinds of things, for people, places, companies and schools'
const outside = { origin: 'registered', admittedBy: 'open' }
const verified = outside
const unverified = { ...outside, verified: false }
const text = 'calculate the sums and products of these numbers'

const winner = async () => (await call('message/send', saying(text))).headers.get('x-agent')

async function ranking() {
  const body = JSON.stringify({ task_summary: text, weights: { skill_match: 1 } })
  const { json } = await post('/agent/negotiation', body)
  return json as { candidates: { agent: { slug: string }; score: number; reasons: string[] }[] }
}

/** Sends messages of other callers, which the agent completes. */
async function completes(slug: string, count: number, client = 'alice') {
  const authorization = bearer(client)
  const ids: string[] = []
  for (let number = 0; number < count; number += 1) {
    const sent = await call('message/send', saying(`only ${slug} zzqx`), { authorization })
    expect(sent.headers.get('x-agent')).toBe(slug)
    ids.push(sent.json.result.id as string)
  }
  const outcomes = ids.map((task_id) => ({ task_id, state: 'completed' }))
  const answer = await fetch(`${gateway().addresses.public}/registry/agents/${slug}/heartbeat`, {
    method: 'PUT',
    headers: { authorization: bearer(slug), 'content-type': 'application/json' },
    body: JSON.stringify({ outcomes }),
  })
  expect(answer.status).toBe(200)
}

test('among scores within 0.05 of the best, supervised agents come first, followed by verified ones and then others', async () => {
  await agent('alpha', `${sums}: zzqx alpha`, unverified)
  await completes('alpha', 20)
  await expect
    .poll(() => gateway().registry.find('alpha')?.measurements?.completedTasks, { timeout: 5000 })
    .toBe(20)
  await agent('beta', sums, verified)
  await agent('gamma', `${sums}.`)
  const { candidates } = await ranking()
  expect(candidates.map(({ agent: { slug } }) => slug)).toEqual(['gamma', 'beta', 'alpha'])
  expect(await winner()).toBe('gamma')
})

test('copies with more tags and a score that is higher by less than 0.05 get no message, however many there are', async () => {
  await agent('maths', `${sums}, units, matrices`)
  for (let number = 0; number < 12; number += 1) await agent(`copy-${number}`, sums, verified)
  const { candidates } = await ranking()
  const own = candidates.find(({ agent: { slug } }) => slug === 'maths')
  expect(own?.score).toBeLessThan(Math.max(...candidates.map(({ score }) => score)))
  expect(candidates[0]).toBe(own)
  expect(own?.reasons).toContain('preferred: supervised, within 0.05 of the best score')
  expect(await winner()).toBe('maths')
})

test('an unverified new agent that matches better gets 5 % of the messages that an agent with evidence would win', async () => {
  const almanac = await agent('almanac', little)
  const copy = await agent('copy', `${sums}. ${text}`, unverified)
  const { candidates } = await ranking()
  expect(candidates.map(({ agent: { slug } }) => slug)).toEqual(['almanac', 'copy'])
  expect((candidates[1]?.score ?? 0) - (candidates[0]?.score ?? 0)).toBeGreaterThan(0.05)
  expect(candidates[1]?.reasons.join()).toContain('unverified new agent')
  const negotiation = { min_score: 0.1, weights: { skill_match: 1 } }
  for (let number = 0; number < 60; number += 1) await call('message/send', saying(text, {}, { negotiation }))
  expect([almanac.sent().length, copy.sent().length]).toEqual([57, 3])
})

test('new agents that fill the whole ranking get 5 % together, however their scores differ', async () => {
  const almanac = await agent('almanac', little)
  const copies: Awaited<ReturnType<typeof agent>>[] = []
  for (let number = 0; number < 12; number += 1) {
    const about = number < 6 ? `${sums}. ${text}` : 'Products and sums of numbers, with tales of far places'
    copies.push(await agent(`copy-${number}`, about, unverified))
  }
  const negotiation = { min_score: 0.1, weights: { skill_match: 1 } }
  for (let number = 0; number < 20; number += 1) await call('message/send', saying(text, {}, { negotiation }))
  const taken = copies.map((copy) => copy.sent().length).reduce((sum, count) => sum + count)
  expect([almanac.sent().length, taken]).toEqual([19, 1])
})

test('an absent new agent does not block a paid agent with evidence', async () => {
  const paid = await agent('calculator', sums, { card: { executionCost: price } })
  await agent('copy', `${sums}. ${text}`, unverified)
  gateway().registry.setStatus(gateway().registry.find('copy')?.id ?? '', 'unreachable')
  for (let number = 0; number < 20; number += 1) expect(await winner()).toBe('calculator')
  expect(paid.sent()).toHaveLength(20)
})

test('two new agents share the 5 %', async () => {
  const almanac = await agent('almanac', little)
  const copies = [
    await agent('copy', `${sums}. ${text}`, unverified),
    await agent('copy-two', `${sums}. ${text}`, unverified),
  ]
  const negotiation = { min_score: 0.1, weights: { skill_match: 1 } }
  for (let number = 0; number < 40; number += 1) await call('message/send', saying(text, {}, { negotiation }))
  const taken = copies.map((copy) => copy.sent().length).reduce((sum, count) => sum + count)
  expect([almanac.sent().length, taken]).toEqual([38, 2])
})

test('a new agent does not substitute for an agent with evidence that is starting', async () => {
  await agent('calculator', sums)
  const copy = await agent('copy', sums, unverified)
  gateway().registry.setStatus(gateway().registry.find('calculator')?.id ?? '', 'starting')
  const refused = await call('message/send', saying(text))
  expect([refused.status, refused.json.error.code, copy.calls]).toEqual([503, -32042, []])
})

test('20 completed tasks of other callers are evidence, but tasks of the agent’s own client are not', async () => {
  await agent('copy', `${sums}: zzqx copy`, unverified)
  const completed = () => gateway().registry.find('copy')?.measurements?.completedTasks ?? 0
  await completes('copy', 3, 'copy')
  await completes('copy', 19)
  await expect.poll(completed, { timeout: 5000 }).toBe(19)
  await agent('abacus', little)
  expect((await ranking()).candidates[0]?.agent.slug).toBe('abacus')
  await completes('copy', 1)
  await expect.poll(completed, { timeout: 5000 }).toBe(20)
  expect((await ranking()).candidates[0]?.agent.slug).toBe('copy')
})
