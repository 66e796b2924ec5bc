import { setTimeout as wait } from 'node:timers/promises'
import { makeLog } from '@parley/kit/process/log'
import { hasRedis, type RedisServer, startRedis } from '@parley/tools/testing/redis-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openBullmqScheduler } from './bullmq.ts'
import { heldWork, jobOf, placeOf, refusalOf, schedulerCases, until } from './scheduler.cases.ts'

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

  test('two processes of an agent share one queue, and each task is delivered to only one of them', async () => {
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

  test('a job that is discarded before it is enqueued does not run or hold back the next job of its owner', async () => {
    await using scheduler = await open(1)
    scheduler.discard(jobOf('a'))
    for (const taskId of ['a', 'b']) scheduler.enqueue(jobOf(taskId))
    const work = heldWork(scheduler)
    work.start()
    await until(() => work.begun.length === 1)
    work.end('b')
    await expect.poll(() => scheduler.waiting).toBe(0)
    expect(work.begun).toEqual(['b'])
  })

  test('redelivers a task that another process holds after its lease has expired', async () => {
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

  test('the unfinished tasks of a drained process move to another process', async () => {
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

  test('tasks outside the queue use all slots except the last, and a released slot returns to the queue', async () => {
    await using scheduler = await open(3)
    expect(scheduler.claimSlot()).toBeUndefined()
    const work = heldWork(scheduler)
    work.start()
    const slots = [scheduler.claimSlot(), scheduler.claimSlot()]
    expect(slots.map((slot) => slot?.runs)).toEqual([true, true])
    expect(scheduler.claimSlot()).toBeUndefined()
    for (const [i, slot] of slots.entries()) scheduler.enqueue(jobOf(`own${i}`), slot)
    expect(work.begun).toEqual(['own0', 'own1'])
    for (const taskId of ['a', 'b']) scheduler.enqueue(jobOf(taskId))
    await until(() => work.begun.length === 3)
    await wait(100)
    expect([work.begun.length, scheduler.active]).toEqual([3, 3])
    work.end('own0')
    await until(() => work.begun.length === 4)
    expect(work.begun.slice(2)).toEqual(['a', 'b'])
  })

  test('no task runs outside the queue while jobs are waiting in it', async () => {
    await using scheduler = await open(4)
    const work = heldWork(scheduler)
    work.start()
    scheduler.claimSlot()?.release()
    expect(scheduler.active).toBe(0)
    const place = await placeOf(scheduler)
    expect(scheduler.claimSlot()).toBeUndefined()
    place.release()
    expect(scheduler.claimSlot()).toBeDefined()
  })

  test('a task that ran outside the queue of a drained process moves to another process', async () => {
    await using second = await open(2, 'drained-own')
    await using first = await open(2, 'drained-own')
    const here = heldWork(first)
    here.start()
    first.enqueue(jobOf('a'), first.claimSlot())
    await first.drain(AbortSignal.timeout(1))
    expect(first.active).toBe(1)
    const drained = first.drain(new AbortController().signal)
    here.end('a')
    await drained
    const there = heldWork(second)
    there.start()
    await until(() => there.begun.length === 1)
    expect(there.begun).toEqual(['a'])
  })

  test('only one of the processes that share a queue wins the sweep', async () => {
    await using first = await open(1, 'turns')
    await using second = await open(1, 'turns')
    const turns = await Promise.all([first.claimSweep(2000), second.claimSweep(2000)])
    expect(turns.filter(Boolean)).toHaveLength(1)
    while (!(await second.claimSweep(60_000))) await wait(10)
    expect(await first.claimSweep(1)).toBe(false)
  })

  test('restored and new tasks run after Redis restarts without data', async () => {
    await using scheduler = await open(1)
    for (const taskId of ['a', 'b']) scheduler.enqueue(jobOf(taskId))
    await wait(50)
    await redis.kill()
    while ((await refusalOf(scheduler)) === undefined) await wait(5)
    const data = { reason: 'scheduler' }
    expect(await refusalOf(scheduler)).toMatchObject({ code: -32042, status: 503, data })
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
