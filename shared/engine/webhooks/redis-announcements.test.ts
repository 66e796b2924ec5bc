import { makeLog } from '@parley/kit/process/log'
import { hasRedis, type RedisServer, startRedis } from '@parley/tools/testing/redis-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TaskKey } from '../store/webhook-store.ts'
import { openRedisAnnouncements } from './redis-announcements.ts'
import { SubscribedTasks } from './subscribed-tasks.ts'

const log = makeLog({ level: 'silent', name: 'test' })
const taskOf = (id: string): TaskKey => ({
  id,
  owner: 'alice',
  createdAt: '2026-01-01T00:00:00.000000+00:00',
})

describe.skipIf(!hasRedis)(
  'announcements of tasks with webhooks between processes (needs redis-server)',
  () => {
    let redis: RedisServer
    beforeAll(async () => {
      redis = await startRedis()
    })
    afterAll(() => redis[Symbol.asyncDispose]())

    test('a process tracks a task as soon as another process of its agent has a config for it', async () => {
      const { url } = redis
      await using here = await openRedisAnnouncements({ url, log, agentId: 'one' })
      await using there = await openRedisAnnouncements({ url, log, agentId: 'one' })
      await using another = await openRedisAnnouncements({ url, log, agentId: 'two' })
      const [first, second, otherAgent] = [here, there, another].map(
        (announcements) => new SubscribedTasks({ max: 10, matchAll: false, scanned: true, announcements }),
      ) as [SubscribedTasks, SubscribedTasks, SubscribedTasks]
      for (const tasks of [first, second, otherAgent]) await tasks.listen()
      first.add(taskOf('a'))
      expect(first.has(taskOf('a'))).toBe(true)
      await expect.poll(() => second.has(taskOf('a'))).toBe(true)
      expect(second.has({ ...taskOf('a'), createdAt: 'later' })).toBe(false)
      second.add(taskOf('b'))
      await expect.poll(() => first.has(taskOf('b'))).toBe(true)
      expect(otherAgent.has(taskOf('a'))).toBe(false)
    })

    test('receives announcements again after Redis was unavailable', async () => {
      await using here = await openRedisAnnouncements({ url: redis.url, log, agentId: 'one' })
      await using there = await openRedisAnnouncements({ url: redis.url, log, agentId: 'one' })
      const received: string[] = []
      await there.listen(({ id }) => received.push(id))
      await redis.kill()
      here.announce(taskOf('lost'))
      await redis.restart()
      await expect
        .poll(
          () => {
            here.announce(taskOf('again'))
            return received.at(-1)
          },
          { timeout: 100_000 },
        )
        .toBe('again')
    })
  },
)

test('evicts the oldest task if a scan can find it, and otherwise assumes that every task may have a config', () => {
  const all = (scanned: boolean) => {
    const tasks = new SubscribedTasks({ max: 2, matchAll: false, scanned })
    for (const id of ['a', 'b', 'c']) tasks.add(taskOf(id))
    return ['a', 'b', 'c', 'd'].map((id) => tasks.has(taskOf(id)))
  }
  expect(all(true)).toEqual([false, true, true, false])
  expect(all(false)).toEqual([true, true, true, true])
})
