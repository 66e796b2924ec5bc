import { randomUUID } from 'node:crypto'
import type { InProcessEventBus } from '@parley/engine/events/in-process'
import { AnswerBudget } from '@parley/kit/process/answer-budget'
import type { SendMessage } from '@parley/wire/model/call'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type TestAgent, type TestDefinition, testAgent } from '../../testing.ts'
import { callModel, type ModelCall, resultOf } from './model-call.cases.ts'

const definition: TestDefinition = {
  handle: async ({ text, ask, history, signal }) => {
    if (text === 'ask' && history.length === 1) return ask('what?')
    if (text === 'hang') await new Promise((resolve) => signal.addEventListener('abort', resolve))
    if (text === 'slow') await new Promise((resolve) => setTimeout(resolve, 100))
    if (text === 'large') return 'x'.repeat(100_000)
    return `done: ${text}`
  },
}

let agent: TestAgent
beforeAll(async () => {
  agent = await testAgent(definition, { store: 'memory' })
})
afterAll(() => agent[Symbol.asyncDispose]())

type Given = Partial<SendMessage['message']> & { continues?: boolean } & SendMessage['configuration']

function paramsOf(text: string, given: Given = {}): SendMessage {
  const { taskId, contextId, messageId = randomUUID(), continues, ...configuration } = given
  const message = {
    role: 'user' as const,
    parts: [{ kind: 'text' as const, text }],
    messageId,
    ...(taskId !== undefined && { taskId }),
    ...(contextId !== undefined && { contextId }),
  }
  return { message, configuration, continues }
}

const send = (text: string, given?: Given, call?: ModelCall) =>
  resultOf(agent, 'sendMessage', paramsOf(text, given), call)

test('a send that waits returns the ended task with its artifacts', async () => {
  const task = await send('slow', { wait: true })
  expect(task.status.state).toBe('completed')
  expect(task.artifacts[0]?.parts).toMatchObject([{ text: 'done: slow' }])
  expect(task.history).toHaveLength(2)
  expect((await send('slow')).status.state).toBe('submitted')
})

test('a send that waits does not read a task that ran in this process', async () => {
  const read = vi.spyOn(agent.app.services.store, 'outlineTask')
  expect((await send('slow', { wait: true })).status.state).toBe('completed')
  expect(read).not.toHaveBeenCalled()
  read.mockRestore()
})

test('a send that waits returns a task that pauses, and the next message the task that ends', async () => {
  const paused = await send('ask', { wait: true })
  expect(paused.status).toMatchObject({ state: 'input-required', message: { parts: [{ text: 'what?' }] } })
  const ended = await send('this', { wait: true, taskId: paused.id, continues: true })
  expect(ended).toMatchObject({ id: paused.id, contextId: paused.contextId, status: { state: 'completed' } })
})

test.each([
  [0, 0],
  [1, 1],
  [9, 2],
])('historyLength %i: the answer has %i of two messages', async (historyLength, length) => {
  const task = await send('hello', { wait: true, historyLength })
  expect(task.history).toHaveLength(length)
  expect((await send('hello', { historyLength: 0 })).history).toHaveLength(0)
})

test('a stream that asks for no history begins with a task without messages', async () => {
  const answer = await callModel(agent, 'streamMessage', paramsOf('hello', { historyLength: 0 }))
  if (!('items' in answer)) throw new Error('no stream')
  const [first] = await Array.fromAsync(answer.items)
  expect(first).toMatchObject({ kind: 'present-task', task: { history: [] } })
})

test('after the maximum time, the answer is the unfinished task, which continues', async () => {
  await using impatient = await testAgent(definition, {
    store: 'memory',
    env: { SEND_WAIT_MAX_SECONDS: '1' },
  })
  const began = performance.now()
  const task = await resultOf(impatient, 'sendMessage', paramsOf('hang', { wait: true }))
  expect(performance.now() - began).toBeGreaterThan(900)
  expect(task.status.state).toBe('working')
  expect((await impatient.caller('alice').get(task.id)).status.state).toBe('working')
  await impatient.caller('alice').cancel(task.id)
})

test('a client that disconnects ends the wait and not the task', async () => {
  const client = new AbortController()
  const waiting = send('hang', { wait: true }, { signal: client.signal })
  await new Promise((resolve) => setTimeout(resolve, 50))
  const bus = agent.app.services.bus as InProcessEventBus
  const topics = bus.topics
  client.abort()
  const { id } = await waiting
  expect((await agent.caller('alice').get(id)).status.state).toBe('working')
  // The run itself still listens for a cancellation.
  expect(bus.topics).toBe(topics)
  expect(await resultOf(agent, 'cancelTask', { taskId: id })).toMatchObject({ status: { state: 'canceled' } })
})

test('a cancellation ends the wait', async () => {
  const waiting = send('hang', { wait: true })
  const alice = agent.caller('alice')
  const working = async () => (await alice.list()).find(({ status }) => status.state === 'working')
  await expect.poll(working).toBeDefined()
  await alice.cancel((await working())?.id ?? '')
  expect((await waiting).status.state).toBe('canceled')
})

test('a server that stops answers with the unfinished task', async () => {
  const stopped = await testAgent(definition, { store: 'memory', drainMs: 50 })
  const waiting = resultOf(stopped, 'sendMessage', paramsOf('hang', { wait: true }))
  await new Promise((resolve) => setTimeout(resolve, 50))
  await stopped[Symbol.asyncDispose]()
  expect((await waiting).status.state).toBe('working')
})

test('an answer that exceeds the caller’s unread bytes is the task as accepted, so that its ID is not lost', async () => {
  const answers = new AnswerBudget({ callerMaxBytes: 50_000, processMaxBytes: 50_000 })
  const unread = answers.open('alice')
  unread.reserve(40_000)
  const task = await send('large', { wait: true }, { answers })
  expect(task).toMatchObject({ status: { state: 'submitted' }, artifacts: [] })
  unread[Symbol.dispose]()
  expect(await send('large', { wait: true }, { answers })).toMatchObject({ status: { state: 'completed' } })
})

test('a repeated request with an Idempotency-Key waits for the same task', async () => {
  const headers = { 'idempotency-key': randomUUID() }
  const params = paramsOf('slow', { wait: true })
  const [one, two] = await Promise.all([1, 2].map(() => resultOf(agent, 'sendMessage', params, { headers })))
  expect(one).toMatchObject({ status: { state: 'completed' } })
  expect(two).toEqual(one)
})

test('continues: a task ID that does not exist, or of another owner, is refused and creates no task', async () => {
  const alice = agent.caller('carol')
  const theirs = await send('hello', { wait: true })
  for (const taskId of [randomUUID(), theirs.id]) {
    const refused = { error: 'TaskNotFound', data: { taskId } }
    const call = { owner: 'carol' }
    await expect(send('hello', { taskId, continues: true }, call)).rejects.toMatchObject(refused)
    const keyed = { ...call, headers: { 'idempotency-key': taskId } }
    await expect(send('hello', { taskId, continues: true }, keyed)).rejects.toMatchObject(refused)
  }
  expect(await alice.list()).toEqual([])
  const chosen = randomUUID()
  expect((await send('hello', { taskId: chosen })).id).toBe(chosen)
})

test('continues: another context is refused with InvalidParams, and an ended task is immutable', async () => {
  const paused = await send('ask', { wait: true })
  const message = { taskId: paused.id, continues: true, wait: true }
  const elsewhere = send('this', { ...message, contextId: randomUUID() })
  await expect(elsewhere).rejects.toMatchObject({ error: 'InvalidParams' })
  expect((await send('this', { ...message, contextId: paused.contextId })).status.state).toBe('completed')
  await expect(send('more', message)).rejects.toMatchObject({ error: 'TaskImmutable' })
})

test('resubscribe with requireOpen refuses an ended task, and follows a task that has not ended', async () => {
  const ended = await send('hello', { wait: true })
  const subscribe = (taskId: string) => callModel(agent, 'resubscribe', { taskId, requireOpen: true })
  await expect(subscribe(ended.id)).rejects.toMatchObject({
    error: 'UnsupportedOperation',
    data: { taskId: ended.id, state: 'completed' },
  })
  const paused = await send('ask', { wait: true })
  expect(await subscribe(paused.id)).toHaveProperty('items')
  expect(await callModel(agent, 'resubscribe', { taskId: ended.id })).toHaveProperty('items')
})
