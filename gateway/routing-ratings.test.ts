import { randomUUID } from 'node:crypto'
import { testAgent } from '@parley/agent/testing'
import { expect, test } from 'vitest'
import { agent, bearer, call, gateway, gatewayForEachTest, post, saying } from './testing.ts'

gatewayForEachTest({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1' })

const weather = 'Weather forecast for any city'

async function scoreOf(slug: string): Promise<number> {
  const body = JSON.stringify({ task_summary: 'weather blimflarg', weights: { skill_match: 1 } })
  const { json } = await post('/agent/negotiation', body)
  return json.candidates.find((one: { agent: { slug: string } }) => one.agent.slug === slug).score
}

/** Creates tasks of eight callers at the agent, which the agent then reports in a heartbeat. */
async function worked(slug: string, rating: number | undefined): Promise<void> {
  const ids: string[] = []
  for (let number = 0; number < 8; number += 1) {
    const headers = { authorization: bearer(`caller-${number}`) }
    const sent = await call('message/send', saying('blimflarg weather forecast'), headers)
    ids.push(sent.json.result.id)
  }
  const outcomes = ids.map((task_id) => ({ task_id, state: 'completed', ...(rating && { rating }) }))
  await beat(slug, { outcomes })
}

async function beat(slug: string, body: object) {
  const answer = await fetch(`${gateway().addresses.public}/registry/agents/${slug}/heartbeat`, {
    method: 'PUT',
    headers: { authorization: bearer(slug), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  expect(answer.status).toBe(200)
}

test('ratings in the heartbeat of a supervised agent count', async () => {
  await agent('sky', weather)
  const before = await scoreOf('sky')
  await worked('sky', 1)
  await expect.poll(() => scoreOf('sky')).toBeLessThan(before)
})

test('an external agent cannot rate itself, because only the outcomes in its heartbeat count', async () => {
  await agent('sky', weather, { origin: 'registered', admittedBy: 'open' })
  const before = await scoreOf('sky')
  await worked('sky', 1)
  const completed = () => gateway().registry.find('sky')?.measurements?.completedTasks
  await expect.poll(completed, { timeout: 10_000 }).toBe(8)
  expect(await scoreOf('sky')).toBe(before)
})

test('a rating given at the agent itself is included in its heartbeat', async () => {
  await using own = await testAgent({ handle: () => 'done' })
  const alice = own.caller('alice')
  const task = await alice.sendAndWait('hello')
  await alice.call('tasks/feedback', { task_id: task.id, feedback: 'good', rating: 4 })
  expect(own.app.services.figures.outcomesSince(0)).toEqual([
    { taskId: task.id, state: 'completed' },
    { taskId: task.id, state: 'completed', rating: 4 },
  ])
  await expect(
    alice.call('tasks/feedback', { task_id: randomUUID(), feedback: '', rating: 1 }),
  ).rejects.toThrow('Task not found')
  expect(own.app.services.figures.outcomesSince(0)).toHaveLength(2)
})
