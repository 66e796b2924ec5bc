import type { RpcError } from '@parley/client/internal/rpc-error'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { hasRedis, type RedisServer, startRedis } from '@parley/tools/testing/redis-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testAgent } from '../../testing.ts'

/** An agent with one worker, which a task occupies until `release` is called, and the given TASK_QUEUE_MAX. */
async function busyAgent(env: Record<string, string>) {
  const release = Promise.withResolvers<void>()
  const ran: string[] = []
  const agent = await testAgent(
    {
      concurrency: 1,
      handle: async ({ text }) => {
        ran.push(text)
        await release.promise
        return text
      },
    },
    { env, drainMs: 50 },
  )
  const { scheduler } = agent.app.services
  const first = await agent.caller('first').send('runs')
  await agent.caller('first').wait(first.id, { untilStates: ['working'] })
  await expect.poll(() => scheduler.waiting).toBe(0)
  const refused = (outcomes: PromiseSettledResult<unknown>[]) =>
    outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as RpcError] : []))
  return { agent, scheduler, ran, release: release.resolve, refused }
}

const fairness = (env: () => Record<string, string>) => {
  test('a caller that uses half of TASK_QUEUE_MAX receives 503 with Retry-After, while other callers are served', async () => {
    const { agent, refused, release, scheduler } = await busyAgent({ ...env(), TASK_QUEUE_MAX: '8' })
    await using _agent = agent
    const [alice, bob, carol] = [agent.caller('alice'), agent.caller('bob'), agent.caller('carol')]
    const many = await Promise.allSettled(Array.from({ length: 20 }, () => alice.send('of alice')))
    const errors = refused(many)
    expect(errors).toHaveLength(16)
    for (const error of errors) {
      const data = { reason: 'queue_full', max: 4 }
      expect(error).toMatchObject({ code: -32042, status: 503, data })
      expect(error.message).toContain('4 tasks of this caller are waiting')
      expect(error.headers.get('retry-after')).toMatch(/^\d+$/)
    }
    for (const text of ['1', '2', '3', '4']) await bob.send(text)
    // The total is also limited.
    const error = await carol.send('too many').catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ status: 503, data: { reason: 'queue_full' } })
    expect((error as Error).message).toBe('Too many tasks are waiting')
    release()
    await expect.poll(() => scheduler.waiting, { timeout: 20_000 }).toBe(0)
    expect((await carol.sendAndWait('now')).status.state).toBe('completed')
  })

  test('a task canceled while it waits frees its place and does not run', async () => {
    const { agent, release, ran, scheduler } = await busyAgent({ ...env(), TASK_QUEUE_MAX: '4' })
    await using _agent = agent
    const alice = agent.caller('alice')
    const waiting = [await alice.send('a'), await alice.send('b')]
    await expect(alice.send('c')).rejects.toMatchObject({ status: 503 })
    for (const { id } of waiting) await alice.cancel(id)
    await expect.poll(() => scheduler.waiting).toBe(0)
    const later = [await alice.send('d'), await alice.send('e')]
    release()
    for (const { id } of later) expect((await alice.wait(id)).status.state).toBe('completed')
    expect(ran).toEqual(['runs', 'd', 'e'])
  })

  test('waiting tasks are served round robin by caller', async () => {
    const { agent, release, ran } = await busyAgent({ ...env(), TASK_QUEUE_MAX: '100' })
    await using _agent = agent
    const ids: [string, string][] = []
    for (const [who, count] of [
      ['alice', 6],
      ['bob', 2],
      ['carol', 1],
    ] as const)
      for (let i = 1; i <= count; i += 1) ids.push([who, (await agent.caller(who).send(`${who}${i}`)).id])
    release()
    for (const [who, id] of ids) await agent.caller(who).wait(id)
    expect(ran.slice(1)).toEqual([
      'alice1',
      'bob1',
      'carol1',
      'alice2',
      'bob2',
      'alice3',
      'alice4',
      'alice5',
      'alice6',
    ])
  })
}

describe('the queue in this process', () => {
  fairness(() => ({}))
})

describe.skipIf(!hasRedis || !hasMongodb)(
  'the queue shared by processes (needs redis-server and mongod)',
  () => {
    let [redis, mongodb]: [RedisServer?, MongodbServer?] = []
    beforeAll(async () => {
      redis = await startRedis()
      mongodb = await startMongodb()
    })
    afterAll(async () => {
      await redis?.[Symbol.asyncDispose]()
      await mongodb?.[Symbol.asyncDispose]()
    })
    fairness(() => ({ REDIS_URL: redis?.url ?? '', STORE_URL: mongodb?.newUrl() ?? '' }))
  },
)
