import { makeLog } from '@parley/kit/process/log'
import { hasRedis, type RedisServer, startRedis } from '@parley/tools/testing/redis-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventBusCases, statusUpdate, until } from './event-bus.cases.ts'
import type { BusMessage } from './event-bus.ts'
import { openRedisEventBus } from './redis.ts'

const log = makeLog({ level: 'silent', name: 'test' })

describe.skipIf(!hasRedis)('the bus on Redis (needs redis-server)', () => {
  let redis: RedisServer
  let agents = 0
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis[Symbol.asyncDispose]())

  const openBuses = async (more: { messageMaxChars?: number } = {}) => {
    const agentId = `agent-${(agents += 1)}`
    const open = () => openRedisEventBus({ url: redis.url, log, agentId, ...more })
    const [here, there] = await Promise.all([open(), open()])
    const dispose = async () => {
      await Promise.all([here[Symbol.asyncDispose](), there[Symbol.asyncDispose]()])
    }
    return { here, there, [Symbol.asyncDispose]: dispose }
  }

  eventBusCases('redis', openBuses)

  test("agents do not receive each other's events", async () => {
    await using first = await openBuses()
    await using second = await openBuses()
    const heard: BusMessage[] = []
    using one = first.there.subscribe('a', (item) => heard.push(item))
    using two = second.there.subscribe('a', (item) => heard.push(item))
    await Promise.all([one.ready, two.ready])
    first.here.publish('a', [statusUpdate('a', 1)])
    second.here.publish('a', [statusUpdate('a', 2)])
    await until(() => heard.length === 2)
    const sequences = heard.map((item) => (item.kind === 'status-update' ? item.sequence : -1))
    expect(new Set(sequences)).toEqual(new Set([1, 2]))
  })

  test('replaces an event that is too large for a message with a change notice, so that it is read from the store', async () => {
    await using buses = await openBuses({ messageMaxChars: 10 })
    const heard: BusMessage[] = []
    using subscription = buses.there.subscribe('a', (item) => heard.push(item))
    await subscription.ready
    buses.here.publish('a', [statusUpdate('a', 1)])
    await until(() => heard.length === 1)
    expect(heard).toEqual([{ kind: 'changed' }])
  })

  test('ping fails while Redis restarts; afterwards, subscribers receive a change notice and further events', async () => {
    await using buses = await openBuses()
    const heard: BusMessage[] = []
    using subscription = buses.there.subscribe('a', (item) => heard.push(item))
    await subscription.ready
    await redis.kill()
    await expect(buses.there.ping()).rejects.toThrow(/./)
    buses.here.publish('a', [statusUpdate('a', 1)])
    await redis.restart()
    await until(() => heard.length === 1)
    expect(heard).toEqual([{ kind: 'changed' }])
    // The publisher reconnects as well. Anything that it publishes before then is lost.
    while (heard.length === 1) {
      buses.here.publish('a', [statusUpdate('a', 2)])
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(heard[1]).toMatchObject({ kind: 'status-update', sequence: 2 })
  })

  test('reports the address without its password if no Redis server responds there', async () => {
    const opened = openRedisEventBus({ url: 'redis://user:secret@127.0.0.1:1', log, agentId: 'a' })
    await expect(opened).rejects.toThrow('REDIS_URL: no reply from Redis at redis://127.0.0.1:1.')
  })
})
