import { hash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { makeLog } from '@parley/kit/process/log'
import { connectRedis } from '@parley/kit/process/redis'
import { hasRedis, startRedis } from '@parley/tools/testing/redis-server'
import { expect, test } from 'vitest'
import { openBullmqScheduler } from './bullmq.ts'
import { heldWork, jobOf, refusalOf, until } from './scheduler.cases.ts'

const log = makeLog({ level: 'silent', name: 'test' })

test.skipIf(!hasRedis)(
  "jobs whose end could not be reported to Redis do not count towards their caller's limit (needs redis-server)",
  async () => {
    await using server = await startRedis()
    await using scheduler = await openBullmqScheduler({ url: server.url, log, agentId: 'a', concurrency: 1 })
    const work = heldWork(scheduler)
    const admin = await connectRedis({ url: server.url, log })
    const { owner } = jobOf('x')
    const members = Array.from({ length: 4 }, (_, i) =>
      JSON.stringify({ taskId: `gone ${i}`, version: 0, owner }),
    )
    await admin.sadd(`parley:{a}:line:queued:${hash('sha256', owner, 'base64url')}`, ...members)
    scheduler.enqueue(jobOf('next'))
    await until(() => scheduler.waiting === 1)
    work.start()
    await scheduler.restore([])
    await until(() => work.begun.includes('next'))
    work.end('next')
    admin.disconnect()
    expect(work.begun).toEqual(['next'])
  },
  180_000,
)

test.skipIf(!hasRedis).each<[string, [string, string], [string, string]]>([
  ['has no memory left', ['maxmemory', '1'], ['maxmemory', '0']],
  ['has become a replica', ['replicaof', '127.0.0.1 1'], ['replicaof', 'no one']],
])(
  'if Redis %s, the queue refuses new work with 503, fails its health check and recovers later (needs redis-server)',
  async (_title, bad, good) => {
    await using server = await startRedis()
    const admin = await connectRedis({ url: server.url, log })
    const set = ([name, value]: [string, string]) =>
      name === 'replicaof' ? admin.call('REPLICAOF', ...value.split(' ')) : admin.config('SET', name, value)
    await using scheduler = await openBullmqScheduler({ url: server.url, log, agentId: 'a', concurrency: 2 })
    const work = heldWork(scheduler)
    work.start()
    const refusal = () => refusalOf(scheduler)
    try {
      expect(await refusal()).toBeUndefined()
      await set(bad)
      while ((await refusal()) === undefined) await wait(5)
      expect(await refusal()).toMatchObject({ code: -32042, status: 503, data: { reason: 'scheduler' } })
      expect(scheduler.claimSlot()).toBeUndefined()
      await expect(scheduler.ping()).rejects.toThrow(/./)
      await set(good)
      while ((await refusal()) !== undefined) await wait(5)
      scheduler.enqueue(jobOf('after'))
      await until(() => work.begun.includes('after'))
      while ((await scheduler.ping().catch(() => 'not yet')) !== undefined) await wait(50)
      work.end('after')
    } finally {
      admin.disconnect()
    }
  },
  180_000,
)
