import { expect, test } from 'vitest'
import { samplePushConfig, sampleTask, webhookStoreCases } from '../store-webhooks.cases.ts'
import { MemoryWebhooks } from './webhooks.ts'

webhookStoreCases('the memory', async () =>
  Object.assign(new MemoryWebhooks(), { [Symbol.asyncDispose]: async () => {} }),
)

const of = (owner: string) => samplePushConfig({ task: sampleTask({ owner }) })

test('a full store removes the config that was completed first', async () => {
  const memory = new MemoryWebhooks({ max: 3 })
  const configs = ['a', 'b', 'c'].map(of)
  for (const config of configs) await memory.savePushConfig(config, 5)
  const [one, two, three] = configs as [(typeof configs)[0], (typeof configs)[0], (typeof configs)[0]]
  for (const config of [two, one])
    await memory.settlePushConfig(config, { settled: 1, open: false, health: config.health })
  expect(await memory.savePushConfig(samplePushConfig(), 5)).toBe(true)
  const left = await Promise.all([one, two, three].map(({ task, id }) => memory.findPushConfig(task, id)))
  expect(left.map((config) => config !== undefined)).toEqual([true, false, true])
  expect(memory.size).toBe(3)
})

test('a full store whose configs all have undelivered events rejects new configs but replaces existing ones', async () => {
  const memory = new MemoryWebhooks({ max: 2 })
  const [one, two] = [of('a'), of('b')]
  for (const config of [one, two]) await memory.savePushConfig(config, 5)
  await expect(memory.savePushConfig(samplePushConfig(), 5)).rejects.toMatchObject({
    error: 'Unavailable',
    data: { reason: 'webhooks_full' },
  })
  expect(await memory.savePushConfig({ ...one, revision: 'new' }, 5)).toBe(true)
  for (const { task, id } of [one, two]) await memory.removePushConfig(task, id)
  expect(memory.size).toBe(0)
})

test('an owner can use at most half of the capacity for configs with undelivered events', async () => {
  const memory = new MemoryWebhooks({ max: 4 })
  const [first, second] = [of('greedy'), of('greedy')]
  for (const config of [first, second]) await memory.savePushConfig(config, 5)
  await expect(memory.savePushConfig(of('greedy'), 5)).rejects.toMatchObject({ error: 'Unavailable' })
  expect(await memory.savePushConfig(of('other'), 5)).toBe(true)
  // A config that was replaced, or has no events left to send, no longer counts toward the owner's limit.
  expect(await memory.savePushConfig({ ...first, revision: 'new' }, 5)).toBe(true)
  await memory.settlePushConfig(second, { settled: 1, open: false, health: second.health })
  expect(await memory.savePushConfig(of('greedy'), 5)).toBe(true)
  await expect(memory.savePushConfig(of('greedy'), 5)).rejects.toMatchObject({ error: 'Unavailable' })
  await memory.removePushConfig(first.task, first.id)
  expect(await memory.savePushConfig(of('greedy'), 5)).toBe(true)
})
