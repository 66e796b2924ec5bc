import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { testAgent } from '../../testing.ts'

test('a task in an existing context sees earlier tasks; the first task and a task without a context see none', async () => {
  const seen: number[] = []
  await using agent = await testAgent({
    handle: ({ context }) => {
      seen.push(context.history.length)
    },
  })
  const alice = agent.caller('alice')
  const contextId = randomUUID()
  const first = await alice.sendAndWait({ text: 'one', contextId })
  expect(first.context_id).toBe(contextId)
  await alice.sendAndWait({ text: 'two', contextId })
  await alice.sendAndWait('three')
  expect(seen).toEqual([0, 1, 0])
})

test('every attempt to use a context of another owner receives -32020 and occupies no worker', async () => {
  await using agent = await testAgent({ concurrency: 1, handle: ({ text }) => text })
  const [alice, bob] = [agent.caller('alice'), agent.caller('bob')]
  const contextId = randomUUID()
  await alice.sendAndWait({ text: 'mine', contextId })
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await expect(bob.send({ text: 'mine too', contextId })).rejects.toMatchObject({
      code: -32020,
      status: 404,
    })
  }
  expect((await bob.sendAndWait('hello')).status.state).toBe('completed')
})
