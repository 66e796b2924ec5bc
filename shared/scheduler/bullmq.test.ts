import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeLog } from '../process/log.ts'
import { hasRedis, type RedisServer, startRedis } from '../testing/redis-server.ts'
import { openBullmqScheduler } from './bullmq.ts'
import { heldWork, jobOf, schedulerCases, until } from './scheduler.cases.ts'
import type { Scheduler } from './scheduler.ts'

const log = makeLog({ level: 'silent', name: 'test' })

describe.skipIf(!hasRedis)('the queue on Redis (needs redis-server)', () => {
  let redis: RedisServer
  let agents = 0
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis[Symbol.asyncDispose]())

  const open = (concurrency: number, agentId = `agent-${(agents += 1)}`) =>
    openBullmqScheduler({ url: redis.url, log, agentId, concurrency })

  schedulerCases('bullmq', open)

  test('two processes of an agent share one line, and each task goes to one of them', async () => {
    await using first = await open(2, 'shared')
    await using second = await open(2, 'shared')
    const [here, there] = [heldWork(first), heldWork(second)]
    here.start()
    there.start()
    for (let i = 0; i < 4; i += 1) first.enqueue(jobOf(`t${i}`))
    await until(() => here.begun.length + there.begun.length === 4)
    expect(here.begun.length).toBe(2)
    expect(new Set([...here.begun, ...there.begun]).size).toBe(4)
  })

  test('a task that another process still has comes again when its lease has ended', async () => {
    await using scheduler = await open(1)
    const work = heldWork(scheduler)
    work.start()
    scheduler.enqueue(jobOf('a'))
    await until(() => work.begun.length === 1)
    work.end('a', Date.now() + 50)
    await until(() => work.begun.length === 2)
    expect(work.begun).toEqual(['a', 'a'])
    work.end('a')
  })

  test('what a drained process had under way goes to another one', async () => {
    await using second = await open(1, 'drained')
    {
      await using first = await open(1, 'drained')
      const here = heldWork(first)
      here.start()
      first.enqueue(jobOf('a'))
      await until(() => here.begun.length === 1)
      await first.drain(AbortSignal.timeout(1))
      here.end('a')
      await wait(50)
    }
    const there = heldWork(second)
    there.start()
    await until(() => there.begun.length === 1)
    expect(there.begun).toEqual(['a'])
  })

  test('Redis comes back empty: what is restored from the store runs, and new work too', async () => {
    await using scheduler = await open(1)
    for (const taskId of ['a', 'b']) scheduler.enqueue(jobOf(taskId))
    await wait(50)
    await redis.kill()
    await until(() => refusalOf(scheduler) !== undefined)
    const data = { reason: 'scheduler' }
    expect(refusalOf(scheduler)).toMatchObject({ code: -32042, status: 503, data })
    await expect(scheduler.restore([jobOf('a')])).rejects.toThrow(/./)
    await redis.restart()
    while (true) {
      try {
        await scheduler.restore([jobOf('a'), jobOf('b')])
        break
      } catch {
        await wait(50)
      }
    }
    const work = heldWork(scheduler)
    work.start()
    scheduler.enqueue(jobOf('c'))
    for (const n of [1, 2, 3]) {
      await until(() => work.begun.length === n)
      work.end(work.begun[n - 1] as string)
    }
    expect(work.begun).toEqual(['a', 'b', 'c'])
  })
})

function refusalOf(scheduler: Scheduler): unknown {
  try {
    scheduler.claimPlace().release()
    return undefined
  } catch (error) {
    return error
  }
}
