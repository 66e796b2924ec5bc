import { testAgent } from '@parley/agent/testing'
import { expect, test } from 'vitest'
import { InProcessScheduler } from './in-process.ts'
import { schedulerCases } from './scheduler.cases.ts'

schedulerCases('in-process', async (concurrency) => new InProcessScheduler(concurrency))

/** Returns a scheduler whose work ends when the test ends it. */
function heldScheduler(concurrency: number) {
  const scheduler = new InProcessScheduler(concurrency)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const start = () =>
    scheduler.start((job) => {
      begun.push(job.taskId)
      return new Promise((resolve) => ends.set(job.taskId, () => resolve(undefined)))
    })
  const end = async (taskId: string) => {
    ends.get(taskId)?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { scheduler, begun, start, end }
}

test("callers take turns, so one caller's many tasks do not delay another caller", async () => {
  const { scheduler, begun, start, end } = heldScheduler(1)
  for (const taskId of ['a1', 'a2', 'a3', 'a4']) scheduler.enqueue({ taskId, version: 0, owner: 'alice' })
  scheduler.enqueue({ taskId: 'b1', version: 0, owner: 'bob' })
  scheduler.enqueue({ taskId: 'c1', version: 0, owner: 'carol' })
  scheduler.enqueue({ taskId: 'b2', version: 0, owner: 'bob' })
  start()
  for (const taskId of ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']) await end(taskId)
  expect(begun).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4'])
})

test('a slot can be claimed while a worker is free and no job is waiting, and again after its release', async () => {
  const { scheduler, begun, start } = heldScheduler(1)
  expect(scheduler.claimSlot()).toBeUndefined()
  start()
  const slot = scheduler.claimSlot()
  expect(slot?.runs).toBe(true)
  expect(scheduler.claimSlot()).toBeUndefined()
  scheduler.enqueue({ taskId: 'waits', version: 0, owner: 'x' })
  expect(begun).toEqual([])
  slot?.release()
  slot?.release()
  expect([begun, scheduler.active]).toEqual([['waits'], 1])
})

test('a slow task never delays another task', async () => {
  await using agent = await testAgent({
    concurrency: 2,
    handle: ({ text, signal }) =>
      text === 'slow'
        ? new Promise<string>((resolve) => signal.addEventListener('abort', () => resolve('')))
        : text,
  })
  const slow = await agent.caller('alice').send('slow')
  for (const text of ['a', 'b', 'c'])
    expect((await agent.caller('bob').sendAndWait(text)).status.state).toBe('completed')
  await agent.caller('alice').cancel(slow.id)
})

test('a caller that uses half of TASK_QUEUE_MAX receives 503 with Retry-After, and answers to paused tasks count', async () => {
  const release = Promise.withResolvers<void>()
  await using agent = await testAgent(
    {
      concurrency: 1,
      handle: async ({ text, ask, history }) => {
        if (text === 'ask' && history.length === 1) return ask('what?')
        await release.promise
        return text
      },
    },
    { env: { TASK_QUEUE_MAX: '6' } },
  )
  const alice = agent.caller('alice')
  const paused = await alice.sendAndWait('ask')
  await alice.send('runs')
  // The requests are concurrent, because the limit also applies between check and commit.
  const all = await Promise.allSettled(Array.from({ length: 20 }, () => alice.send('waits')))
  const refused = all.filter((outcome) => outcome.status === 'rejected')
  expect(refused).toHaveLength(17)
  for (const { reason } of refused) {
    expect(reason).toMatchObject({ code: -32042, status: 503, data: { reason: 'queue_full' } })
    expect((reason as { headers: Headers }).headers.get('retry-after')).toMatch(/^\d+$/)
  }
  expect(await alice.list()).toHaveLength(5)
  const answer = { text: 'that', taskId: paused.id }
  await expect(alice.send(answer)).rejects.toMatchObject({ code: -32042, status: 503 })
  release.resolve()
  const others = (await alice.list()).filter(({ id }) => id !== paused.id)
  for (const { id } of others) expect((await alice.wait(id)).status.state).toBe('completed')
  await alice.send(answer)
  expect((await alice.wait(paused.id)).status.state).toBe('completed')
  expect(agent.app.services.scheduler.waiting).toBe(0)
})
