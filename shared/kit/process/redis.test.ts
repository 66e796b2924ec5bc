import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { wireTo } from '@parley/tools/testing/half-open'
import { hasRedis, type RedisServer, startRedis } from '@parley/tools/testing/redis-server'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { makeLog } from './log.ts'
import { connectRedis } from './redis.ts'
import { ConfigError } from './settings.ts'

const patient = { timeout: 60_000, interval: 20 }
const log = makeLog({ level: 'silent', name: 'test' })

describe.skipIf(!hasRedis)('connections to Redis (needs redis-server)', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server[Symbol.asyncDispose]())
  const address = () => `127.0.0.1:${server.port}`
  const open = async (url: string, options = {}) => {
    const redis = await connectRedis({ url, log, options })
    return { redis, [Symbol.dispose]: () => redis.disconnect() }
  }

  test.each([
    ['no password', ''],
    ['a wrong password', ':secret@'],
    ['an unknown user', 'mallory:secret@'],
  ])('%s is rejected at startup with a sentence that contains only the address', async (_title, user) => {
    using admin = await open(`redis://${address()}`)
    await admin.redis.config('SET', 'requirepass', 'right')
    try {
      const error = await connectRedis({ url: `redis://${user}${address()}`, log }).catch((e: unknown) => e)
      expect(error).toBeInstanceOf(ConfigError)
      expect((error as Error).message).toBe(
        `REDIS_URL: Redis at redis://${address()} rejects this user or password.`,
      )
    } finally {
      await admin.redis.config('SET', 'requirepass', '')
    }
  })

  test('the beginning and end of a Redis outage are each logged once for all connections of a process', async () => {
    await using own = await startRedis()
    const lines: { msg: string }[] = []
    const destination = { write: (line: string) => void lines.push(JSON.parse(line)) }
    const log = makeLog({ level: 'info', name: 'test', destination })
    const connections = await Promise.all(
      [1, 2, 3].map(() => connectRedis({ url: own.url, log, options: { enableOfflineQueue: true } })),
    )
    const refused = connections.map((connection) => once(connection, 'error'))
    await own.kill()
    await Promise.all(refused)
    await own.restart()
    await vi.waitUntil(() => connections.every(({ status }) => status === 'ready'), patient)
    for (const connection of connections) connection.disconnect()
    expect(lines.map(({ msg }) => msg)).toEqual(['connection to Redis lost', 'connection to Redis restored'])
  })

  test('half-open connections are replaced, so commands succeed and messages arrive', async () => {
    await using wire = await wireTo(server.port)
    const url = `redis://127.0.0.1:${wire.port}`
    using publisher = await open(`redis://${address()}`)
    using idle = await open(url)
    using waiting = await open(url, { enableOfflineQueue: true })
    const received = new Set<string>()
    waiting.redis.on('message', (_channel, message) => received.add(message))
    await waiting.redis.subscribe('news')
    wire.silence()
    let isAnswered = false
    while (!isAnswered || received.size === 0) {
      await publisher.redis.publish('news', 'x')
      isAnswered = (await idle.redis.get('x').catch(() => undefined)) === null
      await wait(100)
    }
    expect([...received]).toEqual(['x'])
  })
})
