import { makeLog } from '@parley/kit/process/log'
import { connectRedis } from '@parley/kit/process/redis'
import { hasRedis, startRedis } from '@parley/tools/testing/redis-server'
import { expect, test } from 'vitest'
import { RedisUsers } from './redis-users.ts'

const log = makeLog({ level: 'silent', name: 'test' })
const connected = (url: string) => connectRedis({ url, log })

async function usersAt(url: string): Promise<RedisUsers> {
  const users = await RedisUsers.open({ url, dataDir: '/data', log })
  if (!(users instanceof RedisUsers)) throw new Error(users.reason)
  return users
}

test.skipIf(!hasRedis)('an agent reaches only its own keys and channels (needs redis-server)', async () => {
  await using server = await startRedis()
  await using users = await usersAt(server.url)
  await users.grant('one', 'id-1')
  const redis = await connected(users.urlFor('one'))
  await redis.set('parley:{id-1}:written', '1')
  await redis.publish('parley:{id-1}:task:1', 'event')
  await redis.set('parley:{id-1.slug}:written', '1')
  await redis.set('parley:id-1.slug:meta', '1')
  const refused = [
    () => redis.get('parley:{id-10.slug}:written'),
    () => redis.get('parley:id-2.id-1.slug:meta'),
    () => redis.get('parley:{id-2}:written'),
    () => redis.set('parley:id-2:meta', '1'),
    () => redis.get('parley:registry'),
    () => redis.publish('parley:{id-2}:task:1', 'event'),
    () => redis.subscribe('parley:{id-2}:task:1'),
    () => redis.eval('return redis.call("get", "parley:{id-2}:written")', 0),
    () => redis.keys('*'),
    () => redis.flushall(),
    () => redis.config('GET', '*'),
    () => redis.call('ACL', 'LIST'),
    () => redis.client('LIST'),
  ]
  for (const attempt of refused) await expect(attempt()).rejects.toThrow(/NOPERM|permission|can't access/i)
  redis.disconnect()
})

test.skipIf(!hasRedis)('the users exist again after a restart of Redis (needs redis-server)', async () => {
  await using server = await startRedis()
  await using users = await usersAt(server.url)
  await users.grant('one', 'id-1')
  await server.kill()
  await server.restart()
  const redis = await expect
    .poll(() => connected(users.urlFor('one')).catch(() => undefined))
    .toBeDefined()
    .then(() => connected(users.urlFor('one')))
  expect(await redis.ping()).toBe('PONG')
  redis.disconnect()
})

test.skipIf(!hasRedis)(
  'users are removed at the end, and a gateway without rights says why (needs redis-server)',
  async () => {
    await using server = await startRedis()
    const users = await usersAt(server.url)
    await users.grant('one', 'id-1')
    const url = users.urlFor('one')
    const reason = await RedisUsers.open({ url, dataDir: '/data', log })
    expect(reason).toEqual({ reason: expect.stringContaining('NOPERM') })
    await users[Symbol.asyncDispose]()
    await expect(connected(url)).rejects.toThrow(/rejects this user or password/)
  },
)
