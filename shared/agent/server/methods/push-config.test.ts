import { randomUUID } from 'node:crypto'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { expect, test } from 'vitest'
import { testAgent } from '../../testing.ts'

const env = { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' }
const method = (name: string) => `tasks/pushNotificationConfig/${name}`
const url = 'http://127.0.0.1:1/hook'
const said = () => ({ role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text: 'hello' }] })
const config = (more: object = {}) => ({ id: randomUUID(), url, ...more })

const start = () => testAgent({ handle: ({ text, ask }) => (text === 'wait' ? ask('?') : text) }, { env })

test('set, get, list and delete return {id, push_notification_config, long_running} with the token', async () => {
  await using agent = await start()
  const alice = agent.caller('alice')
  const task = await alice.sendAndWait('wait')
  const authentication = { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'ours' }
  const given = config({ token: 'secret', authentication })
  const shape = { id: task.id, push_notification_config: given, long_running: true }
  const params = { id: task.id, long_running: true, push_notification_config: given }
  expect(await alice.call(method('set'), params)).toMatchObject(shape)
  const health = { attempts: 0, delivered: 0, dropped: {}, last_status: null, last_error: null }
  expect(await alice.call(method('get'), { task_id: task.id })).toMatchObject({ ...shape, ...health })
  expect(await alice.call(method('list'), { id: task.id })).toMatchObject([shape])
  const named = { id: task.id, push_notification_config_id: given.id }
  expect(await alice.call(method('delete'), named)).toMatchObject(shape)
  expect(await alice.call(method('list'), { id: task.id })).toEqual([])
})

test.each([{ schemes: ['Bearer'], credentials: 'a-secret' }, { schemes: ['Basic', 'Bearer'] }])(
  'the authentication {schemes, credentials} of A2A is accepted and returned: %j',
  async (authentication) => {
    await using agent = await start()
    const alice = agent.caller('alice')
    const task = await alice.sendAndWait('wait')
    const given = config({ token: 'secret', authentication })
    const params = { id: task.id, push_notification_config: given }
    expect(await alice.call(method('set'), params)).toMatchObject({ push_notification_config: given })
    expect(await alice.call(method('get'), { task_id: task.id })).toMatchObject({
      push_notification_config: given,
    })
  },
)

test('camelCase is also accepted, and long_running defaults to false', async () => {
  await using agent = await start()
  const alice = agent.caller('alice')
  const task = await alice.sendAndWait('wait')
  const given = config()
  const set = await alice.call(method('set'), { taskId: task.id, pushNotificationConfig: given })
  expect(set).toMatchObject({ push_notification_config: given, long_running: false })
  const named = { taskId: task.id, pushNotificationConfigId: given.id }
  expect(await alice.call(method('get'), named)).toMatchObject({ push_notification_config: given })
  expect(await alice.call(method('delete'), named)).toMatchObject({ push_notification_config: given })
})

test('a task has several configs; setting a known id replaces its config, and get returns the latest, in memory and on disk', async () => {
  await using agent = await start()
  const alice = agent.caller('alice')
  const task = await alice.sendAndWait('wait')
  const [one, two] = [config(), config()]
  const set = (given: object, longRunning: boolean) =>
    alice.call(method('set'), { id: task.id, long_running: longRunning, push_notification_config: given })
  const ids = async () =>
    (
      (await alice.call(method('list'), { id: task.id })) as { push_notification_config: { id: string } }[]
    ).map(({ push_notification_config }) => push_notification_config.id)
  await set(one, true)
  await set(two, false)
  expect(await ids()).toEqual([two.id, one.id])
  await set({ ...one, token: 'new' }, false)
  expect(await alice.call(method('get'), { task_id: task.id })).toMatchObject({
    push_notification_config: { id: one.id, token: 'new' },
    long_running: false,
  })
  expect(await ids()).toEqual([one.id, two.id])
  await set(two, true)
  expect(await alice.call(method('get'), { task_id: task.id })).toMatchObject({
    push_notification_config: { id: two.id },
    long_running: true,
  })
  for (let more = 3; more <= 20; more += 1) await set(config(), more % 2 === 0)
  await expect(set(config(), true)).rejects.toMatchObject({ code: -32602 })
  await expect(set(config(), false)).rejects.toMatchObject({ code: -32602 })
  expect(await ids()).toHaveLength(20)
})

test('the methods also work on ended tasks, without deliveries', async () => {
  await using receiver = await WebhookReceiver.start()
  await using agent = await start()
  const alice = agent.caller('alice')
  const task = await alice.sendAndWait('hello')
  const given = config({ url: receiver.url })
  await alice.call(method('set'), { id: task.id, push_notification_config: given })
  expect(await alice.call(method('get'), { task_id: task.id })).toMatchObject({
    push_notification_config: given,
  })
  await alice.call(method('delete'), { id: task.id, push_notification_config_id: given.id })
  expect(receiver.connections).toBe(0)
})

test('another caller receives the same TaskNotFound as for a missing task', async () => {
  await using agent = await start()
  const task = await agent.caller('alice').sendAndWait('wait')
  await agent.caller('alice').call(method('set'), { id: task.id, push_notification_config: config() })
  const bob = agent.caller('bob')
  const asked = (id: string): [string, object][] => [
    [method('set'), { id, push_notification_config: config() }],
    [method('get'), { task_id: id }],
    [method('list'), { id }],
    [method('delete'), { id, push_notification_config_id: randomUUID() }],
    ['tasks/events', { id }],
  ]
  const missing = randomUUID()
  for (const [i, [name, params]] of asked(task.id).entries()) {
    const theirs = await bob.call(name, params).catch((error: unknown) => error)
    const none = await bob.call(name, asked(missing)[i]?.[1]).catch((error: unknown) => error)
    expect(theirs).toMatchObject({ code: -32001, status: 404, message: (none as Error).message })
  }
})

test('get and delete without a config receive -32001 with a text that names the config', async () => {
  await using agent = await start()
  const alice = agent.caller('alice')
  const task = await alice.sendAndWait('wait')
  const refusal = {
    code: -32001,
    message: expect.stringContaining('Push notification configuration not found'),
  }
  await expect(alice.call(method('get'), { task_id: task.id })).rejects.toMatchObject(refusal)
  const named = { id: task.id, push_notification_config_id: randomUUID() }
  await expect(alice.call(method('delete'), named)).rejects.toMatchObject(refusal)
})

test.each<[string, unknown]>([
  ['no id', { url }],
  ['an id that is no UUID', { id: 'one', url }],
  ['no url', { id: randomUUID() }],
  ['no object', 'config'],
  ['a url that is no text', config({ url: 5 })],
  ['another scheme', config({ url: 'ftp://example.com/' })],
  ['a private address', config({ url: 'http://10.0.0.1/' })],
  ['a token with a line break', config({ token: 'a\r\nX-Other: b' })],
  ['a token with a control character', config({ token: 'a\u0000b' })],
  ['an empty token', config({ token: '' })],
  ['authentication without type', config({ authentication: { scheme: 'bearer' } })],
  ['authentication of an unknown type', config({ authentication: { type: 'magic' } })],
  ['schemes without a scheme', config({ authentication: { schemes: [] } })],
  ['schemes that are no list', config({ authentication: { schemes: 'Bearer' } })],
  ['credentials that are no text', config({ authentication: { schemes: ['Bearer'], credentials: 7 } })],
  ['http without scheme', config({ authentication: { type: 'http' } })],
  ['apiKey without name', config({ authentication: { type: 'apiKey', in: 'header' } })],
  ['apiKey with another place', config({ authentication: { type: 'apiKey', name: 'k', in: 'body' } })],
  ['authentication that is no object', config({ authentication: ['http'] })],
  [
    'authentication without end',
    config({ authentication: { type: 'http', scheme: 'x', more: 'x'.repeat(9000) } }),
  ],
])('a config with %s receives -32602, whether set or inline, and creates no task', async (_what, given) => {
  await using agent = await start()
  const alice = agent.caller('alice')
  const { id } = await alice.sendAndWait('wait')
  await expect(alice.call(method('set'), { id, push_notification_config: given })).rejects.toMatchObject({
    code: -32602,
    status: 400,
  })
  const configuration: Record<string, unknown> = { push_notification_config: given }
  await expect(alice.call('message/send', { message: said(), configuration })).rejects.toMatchObject({
    code: -32602,
    status: 400,
  })
  expect(await alice.list()).toHaveLength(1)
})

test('apiKey is stored and returned; a name that does not resolve is accepted', async () => {
  await using agent = await start()
  const alice = agent.caller('alice')
  const { id } = await alice.sendAndWait('wait')
  const given = config({
    url: 'https://does-not-resolve.invalid-name.example/',
    authentication: { type: 'apiKey', name: 'X-Key', in: 'header', more: { kept: true } },
  })
  await alice.call(method('set'), { id, push_notification_config: given })
  expect(await alice.call(method('get'), { task_id: id })).toMatchObject({ push_notification_config: given })
})

test('without the capability, the four methods answer -32005 with the push-specific name for any params', async () => {
  await using agent = await testAgent(
    { handle: () => 'x', capabilities: { pushNotifications: false } },
    { env },
  )
  for (const name of ['set', 'get', 'list', 'delete']) {
    await expect(agent.caller('alice').call(method(name), {})).rejects.toMatchObject({
      code: -32005,
      status: 400,
      data: { name: 'PushNotificationNotSupportedError' },
    })
  }
})

test.each([
  ['set', 'agent:read'],
  ['delete', 'agent:read'],
  ['get', 'agent:write'],
  ['list', 'agent:write'],
])('%s with only the scope %s receives -32013', async (name, scope) => {
  await using agent = await start()
  await expect(agent.caller('alice', scope).call(method(name), {})).rejects.toMatchObject({ code: -32013 })
})

test('a message that is refused for its context, its working task or its used key leaves no webhook', async () => {
  await using receiver = await WebhookReceiver.start()
  await using agent = await start()
  const [alice, bob] = [agent.caller('alice'), agent.caller('bob')]
  const theirs = await bob.sendAndWait('wait')
  const taskId = randomUUID()
  const inline = { push_notification_config: config({ url: receiver.url }), long_running: true }
  const wrong = alice.send({ text: 'x', taskId, contextId: theirs.context_id }, inline)
  await expect(wrong).rejects.toMatchObject({ code: -32020 })
  await expect(alice.send({ text: 'x', taskId: theirs.id }, inline)).rejects.toMatchObject({ code: -32001 })
  expect(await bob.call(method('list'), { id: theirs.id })).toEqual([])
  const stored = () => agent.app.services.store.webhooks.listOpenPushConfigs({ limit: 10 })
  expect(await stored()).toEqual({ items: [] })
  const task = await alice.sendAndWait({ text: 'hello', taskId })
  expect(await alice.call(method('list'), { id: task.id })).toEqual([])
  await expect(alice.send({ text: 'x', taskId }, inline)).rejects.toMatchObject({ code: -32008 })
  expect(await alice.call(method('list'), { id: task.id })).toEqual([])
  expect(receiver.connections).toBe(0)
})

test('two concurrent messages with one Idempotency-Key create one task with its webhook', async () => {
  await using receiver = await WebhookReceiver.start()
  await using agent = await start()
  const alice = agent.caller('alice')
  const inline = { push_notification_config: config({ url: receiver.url }), long_running: true }
  const message = { text: 'hello', messageId: randomUUID() }
  const options = { headers: { 'idempotency-key': randomUUID() } }
  const tasks = await Promise.all([1, 2, 3].map(() => alice.send(message, inline, options)))
  expect(new Set(tasks.map(({ id }) => id)).size).toBe(1)
  await receiver.waitFor(3)
  expect(await alice.call(method('list'), { id: tasks[0]?.id })).toHaveLength(1)
})

test('clearing a context removes its webhooks, so that a new task with the same id starts without webhooks', async () => {
  await using agent = await start()
  const alice = agent.caller('alice')
  const task = await alice.sendAndWait('hello')
  for (const longRunning of [true, false]) {
    const params = { id: task.id, long_running: longRunning, push_notification_config: config() }
    await alice.call(method('set'), params)
  }
  await alice.call('contexts/clear', { context_id: task.context_id })
  await expect(alice.call(method('list'), { id: task.id })).rejects.toMatchObject({ code: -32001 })
  await alice.sendAndWait({ text: 'hello', taskId: task.id })
  expect(await alice.call(method('list'), { id: task.id })).toEqual([])
})

test('tasks/events returns pages with complete artifacts', async () => {
  await using agent = await start()
  const alice = agent.caller('alice')
  const task = await alice.sendAndWait('hello')
  const first = await alice.call('tasks/events', { id: task.id, limit: 2 })
  expect(first).toMatchObject({
    events: [{ sequence: 1 }, { sequence: 2, artifact: task.artifacts[0] }],
    more: true,
  })
  const rest = await alice.call('tasks/events', { task_id: task.id, after_sequence: 2 })
  expect(rest).toMatchObject({ events: [{ sequence: 3, final: true }], last_sequence: 3, more: false })
  expect(await alice.call('tasks/events', { id: task.id, after_sequence: 99 })).toMatchObject({
    events: [],
    more: false,
  })
})
