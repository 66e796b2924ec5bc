import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import type { Codec } from '@parley/wire/codecs/codec'
import { defaultDialect, dialects } from '@parley/wire/codecs/dialects'
import type { PushConfigInput } from '@parley/wire/model/call'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type TestAgent, type TestAgentOptions, testAgent } from '../../testing.ts'
import { resultOf } from './model-call.cases.ts'

/** A dialect of which only the deliveries differ. */
const other: Codec = {
  ...defaultDialect,
  name: 'other',
  accepts: () => false,
  writeWebhook: (event, task) => JSON.stringify({ other: event.kind, of: task.id }),
  webhookHeaders: ({ token, credentials }) => ({
    'content-type': 'application/other+json',
    ...(token !== undefined && { 'x-other-token': token }),
    ...(credentials && { authorization: `${credentials.scheme} ${credentials.credentials}` }),
  }),
}
const registered = dialects as unknown as Codec[]
beforeAll(() => void registered.push(other))
afterAll(() => void registered.splice(registered.indexOf(other), 1))

const secret = 'c2VjcmV0LWNyZWRlbnRpYWxz'
const credentials = { scheme: 'Basic', credentials: secret }
const start = (options: TestAgentOptions = {}) =>
  testAgent(
    { handle: ({ ask, history }) => (history.length === 1 ? ask('?') : 'done') },
    { ...options, env: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1', ...options.env } },
  )
const message = (taskId?: string) => ({
  role: 'user' as const,
  messageId: randomUUID(),
  parts: [{ kind: 'text' as const, text: 'hello' }],
  ...(taskId !== undefined && { taskId }),
})
const set = (
  agent: TestAgent,
  taskId: string,
  pushNotificationConfig: PushConfigInput,
  longRunning = false,
) => resultOf(agent, 'setPushConfig', { taskId, longRunning, pushNotificationConfig })
const paused = (agent: TestAgent) =>
  resultOf(agent, 'sendMessage', { message: message(), configuration: { wait: true } })
const list = (agent: TestAgent, taskId: string, page: { limit?: number; cursor?: string } = {}) =>
  resultOf(agent, 'listPushConfigs', { taskId, ...page })

test.each([false, true])(
  'configs of different dialects on one task: each delivery has the body and the headers of its dialect (long_running %s)',
  async (longRunning) => {
    await using receiver = await WebhookReceiver.start()
    await using agent = await start()
    const task = await paused(agent)
    const at = (name: string) => `${receiver.url}/${name}`
    await set(agent, task.id, { url: at('own'), token: 't1' }, longRunning)
    await set(agent, task.id, { url: at('other'), token: 't2', credentials, dialect: 'other' }, longRunning)
    await set(agent, task.id, { url: at('unknown'), dialect: 'of a later version' }, longRunning)
    await resultOf(agent, 'sendMessage', { message: message(task.id), configuration: { wait: true } })
    const posts = await receiver.waitFor(9)
    const bodies = (name: string) =>
      posts
        .filter((post) => post.path.endsWith(name))
        .map(({ headers, body }) => ({ headers, body: JSON.parse(body.toString()) }))
    expect(bodies('/own')).toHaveLength(3)
    for (const { headers, body } of bodies('/own')) {
      expect(headers).toMatchObject({ authorization: 'Bearer t1', 'content-type': 'application/json' })
      expect(body).toMatchObject({ task_id: task.id })
    }
    expect(bodies('/other').map(({ body }) => body)).toEqual(
      ['status-update', 'artifact-update', 'status-update'].map((kind) => ({ other: kind, of: task.id })),
    )
    for (const { headers } of bodies('/other'))
      expect(headers).toMatchObject({
        authorization: `Basic ${secret}`,
        'x-other-token': 't2',
        'content-type': 'application/other+json',
      })
    expect(bodies('/unknown').map(({ body }) => body)).toEqual(bodies('/own').map(({ body }) => body))
  },
)

test('a config that is replaced by one of another dialect changes the dialect of pending deliveries', async () => {
  await using receiver = await WebhookReceiver.start({ answer: 503 })
  await using agent = await start()
  const task = await paused(agent)
  const id = randomUUID()
  await set(agent, task.id, { id, url: receiver.url })
  await resultOf(agent, 'sendMessage', { message: message(task.id) })
  await receiver.waitFor(1)
  receiver.answer = 200
  await set(agent, task.id, { id, url: receiver.url, dialect: 'other' })
  const configs = (await list(agent, task.id)).items
  expect(configs).toMatchObject([{ id, dialect: 'other' }])
})

test('name, credentials and dialect of a long_running config survive a restart and are used for pending events', async () => {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-push-'))
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
  await using receiver = await WebhookReceiver.start({ answer: 'hang' })
  let taskId = ''
  const given = { id: randomUUID(), name: 'mine', url: receiver.url, credentials, dialect: 'other' }
  {
    await using agent = await start({ dataDir })
    taskId = (await paused(agent)).id
    expect(await set(agent, taskId, given, true)).toMatchObject(given)
    await resultOf(agent, 'sendMessage', { message: message(taskId), configuration: { wait: true } })
    await receiver.waitFor(1)
  }
  receiver.answer = 200
  const before = receiver.posts.length
  await using agent = await start({ dataDir })
  expect((await list(agent, taskId)).items).toMatchObject([given])
  const posts = (await receiver.waitFor(before + 3)).slice(before)
  expect(posts.every(({ headers }) => headers.authorization === `Basic ${secret}`)).toBe(true)
  expect(JSON.parse(posts[0]?.body.toString() ?? '')).toEqual({ other: 'status-update', of: taskId })
})

test('a config without an ID receives one, also inline, and on an ended task', async () => {
  await using agent = await start()
  const inline = { url: 'http://127.0.0.1:1/', name: 'inline' }
  const task = await resultOf(agent, 'sendMessage', {
    message: message(),
    configuration: { pushNotificationConfig: inline, wait: true },
  })
  const first = await set(agent, task.id, { url: 'http://127.0.0.1:1/' })
  const second = await set(agent, task.id, { url: 'http://127.0.0.1:1/' })
  await resultOf(agent, 'cancelTask', { taskId: task.id })
  const third = await set(agent, task.id, { url: 'http://127.0.0.1:1/' })
  const ids = (await list(agent, task.id)).items.map(({ id }) => id)
  expect(ids.slice(0, 3)).toEqual([third.id, second.id, first.id])
  expect(new Set(ids).size).toBe(4)
  expect(ids.every((id) => /^[\da-f-]{36}$/.test(id))).toBe(true)
})

test('configs are listed in pages, newest first; an invalid cursor is refused', async () => {
  await using agent = await start()
  const { id: taskId } = await paused(agent)
  const ids: string[] = []
  for (let n = 0; n < 5; n += 1)
    ids.unshift((await set(agent, taskId, { url: 'http://127.0.0.1:1/' }, n % 2 === 0)).id)
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    const page = await list(agent, taskId, { limit: 2, ...(cursor !== undefined && { cursor }) })
    pages.push(page.items.map(({ id }) => id))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  expect(pages).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)])
  expect(await list(agent, taskId, { limit: 5 })).not.toHaveProperty('nextCursor')
  for (const wrong of ['', 'x', 'A'.repeat(1000), '{"$gt":""}'])
    await expect(list(agent, taskId, { limit: 2, cursor: wrong })).rejects.toMatchObject({
      error: 'InvalidParams',
      data: { issues: [{ path: 'cursor' }] },
    })
})

test('an idempotent deletion of a missing config succeeds, and one at a missing task does not', async () => {
  await using agent = await start()
  const { id: taskId } = await paused(agent)
  const { id: pushNotificationConfigId } = await set(agent, taskId, { url: 'http://127.0.0.1:1/' })
  const remove = (idempotent: boolean, at = taskId) =>
    resultOf(agent, 'deletePushConfig', { taskId: at, pushNotificationConfigId, idempotent })
  expect(await remove(true)).toMatchObject({ id: pushNotificationConfigId })
  expect(await remove(true)).toBeUndefined()
  await expect(remove(false)).rejects.toMatchObject({ error: 'TaskNotFound' })
  await expect(remove(true, randomUUID())).rejects.toMatchObject({ error: 'TaskNotFound' })
})

test('credentials appear in no log line, no error and no health field', async () => {
  const lines: string[] = []
  await using receiver = await WebhookReceiver.start({ answer: 404 })
  await using agent = await start({
    env: { LOG_LEVEL: 'trace' },
    logTo: { write: (line) => void lines.push(line) },
  })
  const task = await paused(agent)
  await set(agent, task.id, { url: receiver.url, credentials, dialect: 'other' }, true)
  for (const wrong of [
    { url: 'http://10.0.0.1/', credentials },
    { url: receiver.url, credentials: { ...credentials, scheme: `${secret} x` } },
    { url: receiver.url, credentials: { ...credentials, credentials: `${secret}\n` } },
  ]) {
    const error = await set(agent, task.id, wrong).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ error: 'InvalidParams' })
    expect(JSON.stringify([String(error), error])).not.toContain(secret)
  }
  await resultOf(agent, 'sendMessage', { message: message(task.id) })
  await receiver.waitFor(3)
  await expect.poll(async () => (await list(agent, task.id)).items[0]?.health.attempts).toBe(3)
  expect(JSON.stringify((await list(agent, task.id)).items[0]?.health)).not.toContain(secret)
  expect(lines.join('')).toContain('webhook event was not delivered')
  expect(lines.filter((line) => line.includes(secret))).toEqual([])
})
