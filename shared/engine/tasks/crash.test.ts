import { AgentClient } from '@parley/client/internal/client'
import { crashRun } from '@parley/tools/testing/crash-run'
import { KillableAgent } from '@parley/tools/testing/killable-agent'
import { expect, test } from 'vitest'

test('after kill -9 under load, no acknowledged task is lost or left in working, and event numbers have no gaps or duplicates', async () => {
  const figures = await crashRun({ kills: 3, clients: 4, say: () => {} })
  expect(figures).toMatchObject({ kills: 3, lost: 0, stuck: 0, badEvents: 0, doubled: 0 })
  expect(figures.accepted).toBeGreaterThan(0)
  expect(figures.completed).toBeGreaterThan(0)
})

const killer = `export default {
  name: 'killer', description: 'Ends its process', skills: [{ id: 'k', name: 'K', description: 'K' }],
  handle: ({ text }) => text === 'kill' ? process.exit(1) : new Promise((resolve) => setTimeout(() => resolve(text), 150)),
}`

test('a task whose handler exits the process fails after 3 starts, and other tasks complete within 3 starts', async () => {
  await using agent = await KillableAgent.start(killer)
  const client = new AgentClient({ url: agent.url, token: agent.identityProvider.issue('alice') })
  const neighbours = await Promise.all(['a', 'b', 'c'].map((text) => client.send(text)))
  // The process may exit before it responds.
  const taskId = '7b7d1f30-9c53-4d2e-8a6f-0d3a6f1c2b3a'
  await client.send({ text: 'kill', taskId }).catch(() => {})
  for (let start = 2; start <= 3; start += 1) {
    await agent.ended()
    // The process may exit again before it is ready.
    await agent.start().catch(() => {})
  }
  await agent.ended()
  await agent.start()
  const signal = AbortSignal.timeout(60_000)
  expect((await client.wait(taskId, { signal })).status).toMatchObject({
    state: 'failed',
    message: { parts: [{ text: expect.stringContaining('3 times') }] },
  })
  for (const { id } of neighbours) expect((await client.wait(id, { signal })).status.state).toBe('completed')
})
