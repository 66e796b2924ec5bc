import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { hasRedis, type RedisServer, startRedis } from '@parley/tools/testing/redis-server'
import { startedTask } from '@parley/tools/testing/stored-task'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { testAgent } from '../testing.ts'

describe.skipIf(!hasRedis)('an agent with REDIS_URL (needs redis-server)', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis[Symbol.asyncDispose]())

  test('an agent on Redis completes, streams and cancels tasks as with the in-process queue', async () => {
    await using agent = await testAgent(
      {
        handle: ({ text, signal }) =>
          text === 'hang'
            ? new Promise<string>((resolve) => signal.addEventListener('abort', () => resolve('')))
            : text.toUpperCase(),
      },
      { env: { REDIS_URL: redis.url } },
    )
    const alice = agent.caller('alice')
    const done = await alice.sendAndWait('hello')
    expect(done.status.state).toBe('completed')
    const hangs = await alice.send('hang')
    while ((await alice.get(hangs.id)).status.state !== 'working') await wait(10)
    expect((await alice.cancel(hangs.id)).status.state).toBe('canceled')
    while (agent.app.services.scheduler.active > 0) await wait(10)
    const health = (await (await fetch(`${agent.url}/health`)).json()) as { runtime: object }
    expect(health.runtime).toMatchObject({ scheduler_backend: 'bullmq' })
  })

  test('while Redis is unavailable, /health answers 503 and new work is refused; waiting tasks complete after an empty restart', async () => {
    const open = Promise.withResolvers<void>()
    await using agent = await testAgent(
      {
        concurrency: 1,
        handle: async ({ text }) => {
          await open.promise
          return text
        },
      },
      { env: { REDIS_URL: redis.url } },
    )
    const alice = agent.caller('alice')
    const tasks = [await alice.send('one'), await alice.send('two'), await alice.send('three')]
    while (agent.app.services.scheduler.active < 1) await wait(10)
    await redis.kill()
    await wait(50)
    const health = await fetch(`${agent.url}/health`)
    expect(health.status).toBe(503)
    const { checks } = (await health.json()) as { checks: Record<string, string> }
    expect(checks['scheduler']).toMatch(/^error:/)
    expect(checks['bus']).toMatch(/^error:/)
    expect(checks['storage']).toBe('ok')
    await expect(alice.send('four')).rejects.toMatchObject({ code: -32042, status: 503 })
    await redis.restart()
    open.resolve()
    for (const { id } of tasks) expect((await alice.wait(id)).status.state).toBe('completed')
    expect((await fetch(`${agent.url}/health`)).status).toBe(200)
    expect((await alice.sendAndWait('five')).status.state).toBe('completed')
  })
  test('tasks that ran when the process died run one after the other, those with the fewest starts first', async () => {
    const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-on-redis-'))
    onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
    const twice = await startedTask(dataDir, { owner: 'alice', starts: 2, working: true })
    const once = await startedTask(dataDir, { owner: 'alice', starts: 1, working: true })
    const order: string[] = []
    let [atOnce, most] = [0, 0]
    await using agent = await testAgent(
      {
        handle: async ({ task }) => {
          order.push(task.id)
          most = Math.max(most, ++atOnce)
          await wait(1000)
          atOnce -= 1
          return 'x'
        },
      },
      { dataDir, env: { REDIS_URL: redis.url } },
    )
    for (const id of [once, twice])
      expect((await agent.caller('alice').wait(id)).status.state).toBe('completed')
    expect([order, most]).toEqual([[once, twice], 1])
  })
})
