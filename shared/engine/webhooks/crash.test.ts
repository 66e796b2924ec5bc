import { randomUUID } from 'node:crypto'
import { AgentClient } from '@parley/client/internal/client'
import { KillableAgent } from '@parley/tools/testing/killable-agent'
import { type ReceivedPost, WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { expect, test } from 'vitest'

const library = import.meta.resolve('@parley/agent')
const source = `import { artifact } from '${library}'
export default {
  name: 'three', description: 'Makes three artifacts', skills: [{ id: 't', name: 'T', description: 'T' }],
  handle: ({ text }) => ['a', 'b', 'c'].map((name) => artifact(name, text + name)),
}`
const env = { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' }

const byTask = (posts: ReceivedPost[]) => Map.groupBy(posts, ({ event }) => event.task_id)

test('after kill -9 with over 500 pending events, all events arrive in order, and duplicates have the same id', async () => {
  await using receiver = await WebhookReceiver.start({ answer: 'hang' })
  await using agent = await KillableAgent.start(source, env)
  const client = new AgentClient({ url: agent.url, token: agent.identityProvider.issue('alice') })
  const configuration = () => ({
    long_running: true,
    push_notification_config: { id: randomUUID(), url: receiver.url, token: 'secret' },
  })
  const sent = await Promise.all(Array.from({ length: 130 }, (_, i) => client.send(`${i}`, configuration())))
  const tasks = await Promise.all(sent.map(({ id }) => client.wait(id)))
  const obligations = tasks.reduce((sum, { artifacts }) => sum + artifacts.length + 2, 0)
  expect(obligations).toBeGreaterThan(500)
  await receiver.waitFor(1)
  await agent.kill()
  const before = receiver.posts.length
  receiver.answer = 200
  await agent.start()
  const after = () => receiver.posts.slice(before)
  await receiver.waitFor(() => after().length >= obligations)
  expect(after()).toHaveLength(obligations)
  for (const [taskId, posts] of byTask(after())) {
    expect(posts.map(({ event }) => event.sequence)).toEqual(posts.map((_, i) => i + 1))
    const log = (await client.call('tasks/events', { id: taskId })) as { events: { event_id: string }[] }
    expect(posts.map(({ event }) => event)).toEqual(log.events)
    expect(posts.at(-1)?.event).toMatchObject({ kind: 'status-update', final: true })
  }
  expect(byTask(after()).size).toBe(tasks.length)
  // Events that were sent before the crash are sent again unchanged.
  const ids = new Map(after().map(({ event }) => [`${event.task_id} ${event.sequence}`, event.event_id]))
  for (const { event } of receiver.posts.slice(0, before))
    expect(ids.get(`${event.task_id} ${event.sequence}`)).toBe(event.event_id)
  // All events are settled, so the next process sends nothing.
  const total = receiver.posts.length
  await expect
    .poll(async () => {
      const [one] = (await client.call('tasks/pushNotificationConfig/list', { id: tasks[0]?.id })) as {
        delivered: number
      }[]
      return one?.delivered
    })
    .toBe((tasks[0]?.artifacts.length ?? 0) + 2)
  expect(await agent.stop()).toBe(0)
  await agent.start()
  await client.get(tasks[0]?.id ?? '')
  expect(receiver.posts.length).toBe(total)
}, 240_000)

test("a restart removes webhooks that are not long_running, and a paused task's stored webhook continues", async () => {
  await using receiver = await WebhookReceiver.start()
  const asks = `export default { name: 'asks', description: 'Asks', skills: [{ id: 't', name: 'T', description: 'T' }],
    handle: ({ ask, history }) => history.length === 1 ? ask('which?') : 'done' }`
  await using agent = await KillableAgent.start(asks, env)
  const client = new AgentClient({ url: agent.url, token: agent.identityProvider.issue('alice') })
  const tasks = await Promise.all(
    [true, false].map((longRunning) =>
      client.send('x', {
        long_running: longRunning,
        push_notification_config: { id: randomUUID(), url: receiver.url },
      }),
    ),
  )
  await receiver.waitFor(4)
  for (const { id } of tasks) await client.wait(id)
  await agent.kill()
  await agent.start()
  for (const { id } of tasks) await client.send({ text: 'this', taskId: id })
  for (const { id } of tasks) await client.wait(id)
  await receiver.waitFor((posts) => posts.some(({ event }) => event.kind === 'status-update' && event.final))
  const ofTask = (i: number) =>
    byTask(receiver.posts)
      .get(tasks[i]?.id ?? '')
      ?.map(({ event }) => event.sequence)
  expect(new Set(ofTask(0))).toEqual(new Set([1, 2, 3, 4, 5]))
  expect(ofTask(1)).toEqual([1, 2])
  const gone = client.call('tasks/pushNotificationConfig/get', { task_id: tasks[1]?.id })
  await expect(gone).rejects.toMatchObject({ code: -32001 })
}, 240_000)
