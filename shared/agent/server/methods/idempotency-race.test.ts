import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { testAgent } from '../../testing.ts'

test('two concurrent requests with one key receive the same task, even if the second to claim the key creates it', async () => {
  await using agent = await testAgent({ handle: ({ text }) => text })
  const alice = agent.caller('alice')
  const { store } = agent.app.services
  const claim = store.claimIdempotencyKey.bind(store)
  const message = { text: 'once', messageId: randomUUID() }
  const send = () => alice.send(message, undefined, { headers: { 'idempotency-key': 'k' } })
  let second: ReturnType<typeof send> | undefined
  // The first request has claimed the key and continues after the second one.
  store.claimIdempotencyKey = async (record) => {
    const before = await claim(record)
    if (second === undefined) {
      second = send()
      await second
    }
    return before
  }
  const first = await send()
  expect(first.id).toBe((await second)?.id)
  expect(await alice.list()).toHaveLength(1)
})
