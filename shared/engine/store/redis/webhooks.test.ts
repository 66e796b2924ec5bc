import { makeLog } from '@parley/kit/process/log'
import { hasRedis, type RedisServer, startRedis } from '@parley/tools/testing/redis-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  claimCases,
  openPushConfigCases,
  samplePushConfig,
  sampleTask,
  webhookStoreCases,
} from '../store-webhooks.cases.ts'
import { webhookModelCases } from '../store-webhooks-model.cases.ts'
import { openRedisWebhooks, type RedisWebhooksOptions } from './webhooks.ts'

const log = makeLog({ level: 'silent', name: 'test' })

describe.skipIf(!hasRedis)('push configs on Redis (needs redis-server)', () => {
  let redis: RedisServer
  let agents = 0
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis[Symbol.asyncDispose]())

  const open = (more: Partial<RedisWebhooksOptions> = {}) =>
    openRedisWebhooks({ url: redis.url, log, agentId: `agent-${(agents += 1)}`, ...more })

  webhookStoreCases('Redis', open)
  openPushConfigCases(open)
  claimCases(open)
  const all = { max: 5, perOwnerMax: 5 }
  const two = async () => {
    const agentId = `agent-${(agents += 1)}`
    return [await open({ agentId, ...all }), await open({ agentId, ...all })] as const
  }
  webhookModelCases(two, { max: 5, steps: 2000 })

  test('another process of the agent finds the configs, but another agent does not', async () => {
    await using here = await open({ agentId: 'one' })
    await using there = await open({ agentId: 'one' })
    await using stranger = await open({ agentId: 'two' })
    const config = samplePushConfig()
    await here.savePushConfig(config, 5)
    expect(await there.findPushConfig(config.task, config.id)).toEqual(config)
    expect(await stranger.listPushConfigs(config.task)).toEqual([])
  })

  test('a full store removes completed configs and then rejects new ones', async () => {
    await using store = await open({ max: 3, perOwnerMax: 3 })
    const configs = [1, 2, 3].map(() => samplePushConfig())
    for (const config of configs) await store.savePushConfig(config, 5)
    const [one, two, three] = configs as [(typeof configs)[0], (typeof configs)[0], (typeof configs)[0]]
    for (const config of [two, one])
      await store.settlePushConfig(config, { settled: 1, open: false, health: config.health })
    for (const _ of [1, 2]) expect(await store.savePushConfig(samplePushConfig(), 5)).toBe(true)
    const left = await Promise.all([one, two, three].map(({ task, id }) => store.findPushConfig(task, id)))
    expect(left.map((config) => config !== undefined)).toEqual([false, false, true])
    const full = { error: 'Unavailable', data: { reason: 'webhooks_full' } }
    await expect(store.savePushConfig(samplePushConfig(), 5)).rejects.toMatchObject(full)
    expect(await store.savePushConfig({ ...three, revision: 'new' }, 5)).toBe(true)
  })

  test('an owner can use at most half of the capacity for configs with undelivered events', async () => {
    await using store = await open({ max: 4 })
    const of = (owner: string) => samplePushConfig({ task: sampleTask({ owner }) })
    const full = { error: 'Unavailable', data: { reason: 'webhooks_full' } }
    const [first, second] = [of('greedy'), of('greedy')]
    for (const config of [first, second]) await store.savePushConfig(config, 5)
    await expect(store.savePushConfig(of('greedy'), 5)).rejects.toMatchObject(full)
    expect(await store.savePushConfig(of('other'), 5)).toBe(true)
    // A config that was replaced or removed, or has no events left, no longer counts toward the owner's limit.
    expect(await store.savePushConfig({ ...first, revision: 'new' }, 5)).toBe(true)
    await store.settlePushConfig(second, { settled: 1, open: false, health: second.health })
    const third = of('greedy')
    expect(await store.savePushConfig(third, 5)).toBe(true)
    await expect(store.savePushConfig(of('greedy'), 5)).rejects.toMatchObject(full)
    await store.removePushConfig(third.task, third.id)
    expect(await store.savePushConfig(of('greedy'), 5)).toBe(true)
  })

  test('expired configs do not count toward the quota of their owner', async () => {
    await using store = await open({ max: 10, perOwnerMax: 1, openMs: 30 })
    for (let i = 0; i < 3; i += 1) {
      const config = samplePushConfig({ task: sampleTask({ owner: 'greedy' }) })
      await expect.poll(() => store.savePushConfig(config, 5).catch(() => false)).toBe(true)
    }
  })

  test('only one of two concurrent additions of a config succeeds', async () => {
    await using store = await open()
    const config = samplePushConfig()
    expect(await store.addPushConfig(config)).toBe(true)
    expect(await store.addPushConfig({ ...config, revision: 'other' })).toBe(false)
    expect(await store.findPushConfig(config.task, config.id)).toEqual(config)
  })

  test('an expired config frees its capacity and is not listed', async () => {
    await using store = await open({ openMs: 30, closedMs: 30, max: 10 })
    const task = sampleTask()
    await store.savePushConfig(samplePushConfig({ task }), 1)
    await expect.poll(() => store.listPushConfigs(task)).toEqual([])
    expect((await store.listOpenPushConfigs({ limit: 5 })).items).toEqual([])
    expect(await store.savePushConfig(samplePushConfig({ task }), 1)).toBe(true)
  })

  test('while Redis is down, calls reject with Unavailable without driver messages', async () => {
    await using store = await open()
    const config = samplePushConfig()
    await redis.kill()
    const refusal = { error: 'Unavailable', message: expect.stringContaining('long_running') }
    await expect(store.savePushConfig(config, 5)).rejects.toMatchObject(refusal)
    await expect(store.listPushConfigs(config.task)).rejects.toMatchObject(refusal)
    await redis.restart()
    await expect.poll(() => store.savePushConfig(config, 5).catch(() => false)).toBe(true)
  })
})
