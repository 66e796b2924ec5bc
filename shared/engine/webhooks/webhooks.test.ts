import { randomUUID } from 'node:crypto'
import { type TestAgentOptions, type TestDefinition, testAgent } from '@parley/agent/testing'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { expect, test } from 'vitest'

const env = { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' }
const start = (definition: TestDefinition, options: TestAgentOptions = {}) =>
  testAgent(definition, { ...options, env: { ...env, ...options.env } })
const inline = (url: string, more: object = {}, configuration: object = {}) => ({
  push_notification_config: { id: randomUUID(), url, ...more },
  ...configuration,
})
const three = () => ['one', 'two', 'three'].map((name) => ({ artifact: { name, parts: [name] } }))
const isFinal = (events: WebhookReceiver['events']) =>
  events.some((event) => event.kind === 'status-update' && event.final)

test('delivers working first and artifacts before the final status, numbered from 1 without gaps', async () => {
  await using receiver = await WebhookReceiver.start()
  await using agent = await start({
    handle: async function* () {
      yield 'text'
      yield { a: 1 }
    },
  })
  const caller = agent.caller('alice')
  const task = await caller.sendAndWait('hello', inline(receiver.url, { token: 'secret' }))
  await receiver.waitFor(() => isFinal(receiver.events))
  const { events, posts } = receiver
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, i) => i + 1))
  expect(events[0]).toMatchObject({ kind: 'status-update', status: { state: 'working' }, final: false })
  expect(events.at(-1)).toMatchObject({ kind: 'status-update', status: { state: 'completed' }, final: true })
  expect(events.slice(1, -1).map(({ kind }) => kind)).toEqual(task.artifacts.map(() => 'artifact-update'))
  expect(events.every((event) => event.task_id === task.id && event.context_id === task.context_id)).toBe(
    true,
  )
  expect(posts[0]?.headers).toMatchObject({
    'content-type': 'application/json',
    authorization: 'Bearer secret',
    'x-a2a-notification-token': 'secret',
  })
  // The delivered events are identical to the event log.
  const log = (await caller.call('tasks/events', { id: task.id })) as { events: unknown[] }
  expect(log).toMatchObject({ task_id: task.id, last_sequence: events.length, more: false })
  expect(log.events).toEqual(events)
})

test('a receiver that fails twice gets an event in three attempts with the same bytes and id, before the next event', async () => {
  await using receiver = await WebhookReceiver.start({
    answer: ({ event, attempt }) => (event.sequence === 1 && attempt < 3 ? 503 : 200),
  })
  await using agent = await start({ handle: () => 'done' })
  const caller = agent.caller('alice')
  const config = inline(receiver.url)
  const task = await caller.sendAndWait('hello', config)
  await receiver.waitFor(() => isFinal(receiver.events))
  expect(receiver.posts.map(({ event }) => event.sequence)).toEqual([1, 1, 1, 2, 3])
  expect(new Set(receiver.posts.slice(0, 3).map(({ body }) => body.toString())).size).toBe(1)
  await expect
    .poll(() => caller.call('tasks/pushNotificationConfig/get', { task_id: task.id }))
    .toMatchObject({ attempts: 5, delivered: 3, dropped: {}, last_status: 200, last_error: null })
})

test('drops and counts an event that is rejected with 4xx, and delivers the others', async () => {
  await using receiver = await WebhookReceiver.start({
    answer: ({ event }) => (event.sequence === 2 ? 410 : 204),
  })
  const lines: string[] = []
  const logTo = { write: (line: string) => void lines.push(line) }
  await using agent = await start({ handle: () => 'done' }, { env: { LOG_LEVEL: 'info' }, logTo })
  const caller = agent.caller('alice')
  const task = await caller.sendAndWait('hello', inline(receiver.url, { token: 'top-secret' }))
  await receiver.waitFor(3)
  await expect
    .poll(() => caller.call('tasks/pushNotificationConfig/list', { id: task.id }))
    .toMatchObject([{ attempts: 3, delivered: 2, dropped: { rejected: 1 } }])
  const metrics = await (await fetch(`${agent.url}/metrics`)).text()
  expect(metrics).toMatch(/agent_webhook_deliveries_total\{agent_id="[^"]+",outcome="rejected"\} 1/)
  expect(metrics).toMatch(/agent_webhook_deliveries_total\{agent_id="[^"]+",outcome="delivered"\} 2/)
  expect(metrics).toMatch(/agent_webhook_delivery_seconds_count\{agent_id="[^"]+"\} 2/)
  expect(metrics).toMatch(/agent_webhook_events_queued\{agent_id="[^"]+"\} 0/)
  expect(lines.filter((line) => line.includes('webhook event was not delivered'))).toHaveLength(1)
  expect(lines.join('')).not.toContain('top-secret')
})

test('a config receives later events if it is set on a running task, and none if it is set on an ended task', async () => {
  await using receiver = await WebhookReceiver.start()
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  await using agent = await start({ handle: () => gate.then(() => 'done') })
  const caller = agent.caller('alice')
  const task = await caller.send('hello')
  await caller.wait(task.id, { untilStates: ['working'] })
  const set = (longRunning: boolean) =>
    caller.call('tasks/pushNotificationConfig/set', {
      id: task.id,
      long_running: longRunning,
      push_notification_config: { id: randomUUID(), url: receiver.url },
    })
  await set(false)
  await set(true)
  open()
  await receiver.waitFor(4)
  await caller.wait(task.id)
  await set(true)
  const numbers = receiver.posts.map(({ event }) => event.sequence).sort((a, b) => a - b)
  expect(numbers).toEqual([2, 2, 3, 3])
  const list = (await caller.call('tasks/pushNotificationConfig/list', { id: task.id })) as unknown[]
  expect(list).toHaveLength(3)
})

test('a webhook registered with the next message to a paused task receives all events from working onwards', async () => {
  await using receiver = await WebhookReceiver.start()
  await using agent = await start({
    handle: ({ ask, history }) => (history.length === 1 ? ask('Which?') : 'done'),
  })
  const caller = agent.caller('alice')
  const task = await caller.sendAndWait('hello')
  await caller.sendAndWait({ text: 'this', taskId: task.id }, inline(receiver.url))
  await receiver.waitFor(() => isFinal(receiver.events))
  expect(receiver.events.map(({ sequence }) => sequence)).toEqual([3, 4, 5])
})

test.each([
  ['deleted', 'delete'],
  ['replaced', 'set'],
])('discards a pending event and a pending retry when its config is %s', async (_how, method) => {
  await using receiver = await WebhookReceiver.start({ answer: 503 })
  await using agent = await start({ handle: () => 'done' })
  const caller = agent.caller('alice')
  const config = inline(receiver.url)
  const { id } = config.push_notification_config
  const task = await caller.sendAndWait('hello', config)
  await receiver.waitFor(1)
  await caller.call(
    `tasks/pushNotificationConfig/${method}`,
    method === 'set'
      ? { id: task.id, push_notification_config: { id, url: receiver.url } }
      : { id: task.id, push_notification_config_id: id },
  )
  const after = receiver.posts.length
  await new Promise((resolve) => setTimeout(resolve, 1200))
  expect(receiver.posts.length).toBe(after)
  expect(await (await fetch(`${agent.url}/metrics`)).text()).toMatch(/agent_webhook_events_queued\{[^}]+\} 0/)
})

test('a hanging receiver delays neither the agent nor another receiver', async () => {
  await using hanging = await WebhookReceiver.start({ answer: 'hang' })
  await using receiver = await WebhookReceiver.start()
  await using agent = await start({ handle: () => 'done' })
  const caller = agent.caller('alice')
  await Promise.all(Array.from({ length: 100 }, () => caller.sendAndWait('hello', inline(hanging.url))))
  await caller.sendAndWait('hello', inline(receiver.url))
  await receiver.waitFor(() => isFinal(receiver.events))
  expect(hanging.posts.length).toBeLessThan(100)
})

test("a task's webhook overrides the global one, and WEBHOOK_URL and WEBHOOK_TOKEN override the manifest", async () => {
  await using own = await WebhookReceiver.start()
  await using manifest = await WebhookReceiver.start()
  await using settings = await WebhookReceiver.start()
  await using agent = await start(
    { handle: () => 'done', globalWebhook: { url: manifest.url, token: 'of the manifest' } },
    { env: { WEBHOOK_URL: settings.url, WEBHOOK_TOKEN: 'ours' } },
  )
  const caller = agent.caller('alice')
  await caller.sendAndWait('hello', inline(own.url))
  const task = await caller.sendAndWait('hello')
  await settings.waitFor(3)
  await own.waitFor(3)
  expect(settings.posts.every(({ event }) => event.task_id === task.id)).toBe(true)
  expect(settings.posts[0]?.headers.authorization).toBe('Bearer ours')
  expect(own.posts.every(({ event }) => event.task_id !== task.id)).toBe(true)
  expect(manifest.posts).toEqual([])
})

test("the manifest's global webhook receives the events of tasks without a webhook", async () => {
  await using receiver = await WebhookReceiver.start()
  await using agent = await start({
    handle: () => three().map(({ artifact }) => artifact.name),
    // These are the manifest fields defined in spec/webhooks.md#capability.
    global_webhook_url: receiver.url,
    global_webhook_token: 'manifest',
  })
  await agent.caller('alice').sendAndWait('hello')
  await receiver.waitFor(() => isFinal(receiver.events))
  expect(receiver.events.map(({ sequence }) => sequence)).toEqual(receiver.events.map((_, i) => i + 1))
  expect(receiver.posts[0]?.headers.authorization).toBe('Bearer manifest')
})

test('logs a warning at start-up if the global webhook is refused', async () => {
  const lines: string[] = []
  const logTo = { write: (line: string) => void lines.push(line) }
  await using agent = await testAgent(
    { handle: () => 'done', globalWebhook: { url: 'http://127.0.0.1:1/', token: 'x' } },
    { env: { LOG_LEVEL: 'warn', WEBHOOK_ALLOWED_HOSTS: 'none' }, logTo },
  )
  await expect.poll(() => lines.join('')).toContain('the global webhook is refused')
  expect((await agent.caller('alice').sendAndWait('hello')).status.state).toBe('completed')
})

test('sends no event to inline, global or stored configs if the capability is missing', async () => {
  await using receiver = await WebhookReceiver.start()
  const capabilities = { pushNotifications: false }
  await using agent = await start({
    handle: () => 'done',
    capabilities,
    globalWebhook: { url: receiver.url },
  })
  const caller = agent.caller('alice')
  await expect(caller.send('hello', inline(receiver.url))).rejects.toMatchObject({
    code: -32003,
    status: 400,
  })
  await caller.sendAndWait('hello')
  expect(receiver.connections).toBe(0)
  const card = await (await fetch(`${agent.url}/.well-known/agent.json`)).json()
  expect(card).toMatchObject({ capabilities: { pushNotifications: false } })
})
