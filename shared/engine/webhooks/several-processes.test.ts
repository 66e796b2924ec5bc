import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { AgentClient, SendConfiguration } from '@parley/client/internal/client'
import {
  AgentProcesses,
  eventsOf,
  hasServers,
  type Servers,
  startServers,
} from '@parley/tools/testing/agent-processes'
import { type ReceivedPost, WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const env = { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' }
type Two = [AgentClient, AgentClient]

describe.skipIf(!hasServers)('webhooks of several processes (needs mongod, redis-server)', () => {
  let servers: Servers
  beforeAll(async () => {
    servers = await startServers()
  })
  afterAll(() => servers[Symbol.asyncDispose]())

  const to = ({ url }: WebhookReceiver, longRunning: boolean): SendConfiguration => ({
    long_running: longRunning,
    push_notification_config: { id: randomUUID(), url, token: 'secret' },
  })
  const sequences = (posts: ReceivedPost[], taskId: string, attempts?: 1) =>
    posts
      .filter(({ event, attempt }) => event.task_id === taskId && (attempts ?? attempt) === attempt)
      .map(({ event }) => event.sequence)
  const isLast = ({ event }: ReceivedPost) => event.kind === 'status-update' && event.final
  const limit = () => ({ signal: AbortSignal.timeout(100_000) })

  /**
   * Sends the message to one process. Returns the process that delivers the events, which is the one that ran
   * the task.
   */
  async function heldTask(agents: AgentProcesses, longRunning: boolean) {
    const receiver = await WebhookReceiver.start({ answer: 'hang' })
    const [here, there] = agents.callers('alice') as Two
    const text = `soon ${randomUUID()}`
    const { id } = await here.send(text, to(receiver, longRunning))
    await here.wait(id, limit())
    await receiver.waitFor(1)
    const sender = agents.of(agents.notes(text)[0]?.pid)
    return { receiver, id, sender, left: sender === agents.all[0] ? there : here }
  }

  test.each([true, false])(
    'sends each event once and in order, regardless of which process changes the task (long_running %s)',
    async (longRunning) => {
      await using agents = await AgentProcesses.start(2, servers, env)
      await using receiver = await WebhookReceiver.start({ answer: { status: 200, afterMs: 30 } })
      const [here, there] = agents.callers('alice') as Two
      const tasks = await Promise.all(
        ['soon', 'ask', 'soon', 'ask', 'hang', 'hang'].map(async (text, i) => {
          const { id } = await here.send(`${text} ${i}`, to(receiver, longRunning))
          if (text === 'ask') {
            await there.wait(id, limit())
            await there.send({ text: 'go', taskId: id })
          }
          if (text === 'hang') {
            await receiver.waitFor((posts) => posts.some(({ event }) => event.task_id === id))
            await there.cancel(id)
          }
          return (await there.wait(id, limit())).id
        }),
      )
      await receiver.waitFor((posts) => posts.filter(isLast).length === tasks.length)
      for (const id of tasks) {
        const log = await eventsOf(here, id)
        expect(sequences(receiver.posts, id)).toEqual(log.map(({ sequence }) => sequence))
        const [config] = await there.listPushConfigs(id)
        await expect
          .poll(async () => (await there.listPushConfigs(id))[0])
          .toMatchObject({ delivered: log.length })
        await there.deletePushConfig(id, config?.push_notification_config.id ?? '')
        expect(await here.listPushConfigs(id)).toEqual([])
      }
      expect(receiver.posts.every(({ attempt }) => attempt === 1)).toBe(true)
    },
    180_000,
  )

  test.each([true, false])(
    'after SIGKILL of the sender, another process sends the remaining events in order (long_running %s)',
    async (longRunning) => {
      await using agents = await AgentProcesses.start(2, servers, env)
      const { receiver, id, sender, left } = await heldTask(agents, longRunning)
      await using _ = receiver
      await sender.kill()
      const at = Date.now()
      receiver.answer = 200
      const before = receiver.posts.length
      await expect.poll(() => receiver.posts.some(isLast), { timeout: 100_000 }).toBe(true)
      console.info(`sent ${Date.now() - at} ms after the kill`)
      expect(sequences(receiver.posts, id, 1)).toEqual(
        (await eventsOf(left, id)).map(({ sequence }) => sequence),
      )
      expect(sequences(receiver.posts, id).slice(before)).toEqual([1, 2, 3])
    },
    180_000,
  )

  test('if the sender is suspended for 15 s, another process sends the rest in order and without duplicates', async () => {
    await using agents = await AgentProcesses.start(2, servers, env)
    const { receiver, id, sender } = await heldTask(agents, true)
    await using _ = receiver
    sender.freeze()
    receiver.answer = 200
    const frozen = wait(15_000)
    await expect.poll(() => receiver.posts.some(isLast), { timeout: 100_000 }).toBe(true)
    await frozen
    const before = receiver.posts.length
    sender.thaw()
    // This leaves time for another attempt, if there is one.
    await wait(7000)
    expect(sequences(receiver.posts, id).slice(1)).toEqual([1, 2, 3])
    expect(receiver.posts.length).toBe(before)
  })

  test('delivers the events for a config that could not be announced while Redis was down', async () => {
    await using agents = await AgentProcesses.start(2, servers, env)
    await using receiver = await WebhookReceiver.start()
    const [here, there] = agents.callers('alice') as Two
    const tasks = await Promise.all(Array.from({ length: 8 }, (_, i) => here.send(`ask ${i}`)))
    for (const { id } of tasks) await here.wait(id, limit())
    for (const { id } of tasks)
      await there.setPushConfig(id, { id: randomUUID(), url: receiver.url }, { longRunning: true })
    await servers.redis.kill()
    for (const { id } of tasks) await here.cancel(id)
    await receiver.waitFor((posts) => posts.filter(isLast).length === tasks.length)
    await servers.redis.restart()
    for (const { id } of tasks) expect(sequences(receiver.posts, id, 1)).toEqual([3])
  })

  test('the global webhook receives each event once, until the task has its own config', async () => {
    await using receiver = await WebhookReceiver.start()
    await using own = await WebhookReceiver.start()
    await using agents = await AgentProcesses.start(2, servers, { ...env, WEBHOOK_URL: receiver.url })
    const [here, there] = agents.callers('alice') as Two
    const sent = await Promise.all(Array.from({ length: 8 }, (_, i) => here.send(`hang ${i}`)))
    await receiver.waitFor(8)
    for (const { id } of sent.slice(1)) await there.cancel(id)
    await receiver.waitFor((posts) => posts.filter(isLast).length === 7)
    for (const { id } of sent.slice(1)) expect(sequences(receiver.posts, id)).toEqual([1, 2])
    const { id } = sent[0] as { id: string }
    await there.setPushConfig(id, { id: randomUUID(), url: own.url })
    await here.cancel(id)
    await own.waitFor(1)
    expect(sequences(own.posts, id)).toEqual([2])
    expect(sequences(receiver.posts, id)).toEqual([1])
  })
})
