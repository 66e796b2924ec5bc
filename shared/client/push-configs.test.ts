import { randomUUID } from 'node:crypto'
import { testAgent } from '@parley/agent/testing'
import { expect, test } from 'vitest'

test('the client sets, reads and removes webhooks, and reads the event log', async () => {
  await using agent = await testAgent({ handle: ({ text }) => text })
  const client = agent.caller('alice')
  const task = await client.sendAndWait('hello')
  const config = { id: randomUUID(), url: 'https://93.184.215.14/hook', token: 'secret' }
  const set = await client.setPushConfig(task.id, config, { longRunning: true })
  expect(set).toMatchObject({
    id: task.id,
    push_notification_config: config,
    long_running: true,
    delivered: 0,
  })
  expect(await client.getPushConfig(task.id)).toEqual(set)
  expect(await client.listPushConfigs(task.id)).toEqual([set])
  expect(await client.deletePushConfig(task.id, config.id)).toEqual(set)
  await expect(client.getPushConfig(task.id)).rejects.toMatchObject({ code: -32001 })
  const first = await client.events(task.id, { limit: 1 })
  expect(first).toMatchObject({ events: [{ sequence: 1 }], last_sequence: 3, more: true })
  const rest = await client.events(task.id, { afterSequence: 1 })
  expect(rest.events.map(({ sequence }) => sequence)).toEqual([2, 3])
})
