import { setTimeout as wait } from 'node:timers/promises'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { HandlerContext } from '../../author/context.ts'
import { type Output, progress } from '../../author/output.ts'
import { type TestAgent, testAgent } from '../../testing.ts'

let handle: (context: HandlerContext) => AsyncGenerator<Output>
let agent: TestAgent
beforeAll(async () => {
  agent = await testAgent(
    { handle: (context) => handle(context) },
    { env: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' } },
  )
})
afterAll(() => agent[Symbol.asyncDispose]())

const progressOf = async (by: typeof handle, messages: unknown[] = []) => {
  handle = by
  const sequences: (number | undefined)[] = []
  let taskId = ''
  for await (const event of agent.caller('alice').stream('hello')) {
    taskId = event.task_id
    if (event.kind !== 'status-update') continue
    sequences.push(event.sequence)
    if (event.status.state === 'working') messages.push(event.status.message?.parts)
  }
  return { messages, sequences, task: await agent.caller('alice').get(taskId) }
}

test('a progress message is a numbered event with `working`, and not part of the result or the history', async () => {
  const { messages, sequences, task } = await progressOf(async function* () {
    await wait(50)
    yield progress('Reading', { page: 3 })
    await wait(100)
    yield 'done'
  })
  expect(messages).toEqual([
    undefined,
    [
      { kind: 'text', text: 'Reading' },
      { kind: 'data', data: { page: 3 } },
    ],
  ])
  expect(sequences).toEqual([0, 1, 2, 4])
  expect(task).toMatchObject({ status: { state: 'completed' }, artifacts: [{ parts: [{ text: 'done' }] }] })
  expect(task.status).not.toHaveProperty('message')
  expect(JSON.stringify(task.history)).not.toContain('Reading')
})

test('webhooks receive progress messages', async () => {
  await using receiver = await WebhookReceiver.start()
  handle = async function* () {
    await wait(50)
    yield progress('Reading')
    await wait(100)
    yield 'done'
  }
  const pushNotificationConfig = { id: crypto.randomUUID(), url: receiver.url }
  await agent.caller('alice').send('hello', { pushNotificationConfig })
  const posts = await receiver.waitFor(4)
  const received = posts.map(({ event }) => [
    event.sequence,
    event.kind === 'status-update' ? event.status.message?.parts[0] : event.kind,
  ])
  expect(received).toMatchObject([
    [1, undefined],
    [2, { text: 'Reading' }],
    [3, 'artifact-update'],
    [4, undefined],
  ])
})

test('of many progress messages, one per second is sent, and the newest replaces those before it', async () => {
  const seen: unknown[] = []
  let [sent, began, ended] = [0, 0, 0]
  const { messages, task } = await progressOf(async function* () {
    began = performance.now()
    // The first two of the messages are the beginning of the run and the first progress.
    while (seen.length < 3) {
      yield progress(`${sent++}`)
      await wait(1)
    }
    ended = performance.now()
    yield 'done'
  }, seen)
  expect(task.status.state).toBe('completed')
  expect(messages).toHaveLength(3)
  expect(sent).toBeGreaterThan(3)
  expect(ended - began).toBeGreaterThan(900)
})

test('progress messages that wait at the end of the task are dropped', async () => {
  const { messages, task } = await progressOf(async function* () {
    for (let i = 0; i < 1000; i += 1) yield progress(`${i}`)
    yield 'done'
  })
  expect(task.status.state).toBe('completed')
  expect(messages.length).toBeLessThan(3)
})

test('a progress message is limited to 16 KiB', async () => {
  const { task } = await progressOf(async function* () {
    yield progress('x'.repeat(17_000))
  })
  expect(JSON.stringify(task.status)).toContain('a progress message is larger than 16384 bytes')
})
