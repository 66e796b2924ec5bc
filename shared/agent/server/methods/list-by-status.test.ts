import { randomUUID } from 'node:crypto'
import { LazyPart } from '@parley/wire/codecs/lazy-part'
import { idsOf } from '@parley/wire/model/ids'
import type { Calls } from '@parley/wire/model/operation'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'
import { callModel, resultOf } from './model-call.cases.ts'

let agent: TestAgent
beforeAll(async () => {
  agent = await testAgent({
    handle: ({ text, ask, history }) => {
      if (text === 'ask' && history.length === 1) return ask('what?')
      return text === 'large' ? 'x'.repeat(400_000) : text
    },
  })
})
afterAll(() => agent[Symbol.asyncDispose]())

interface Sent {
  taskId?: string
  contextId?: string
  contextName?: string
}

const send = (owner: string, text: string, given: Sent = {}) =>
  resultOf(
    agent,
    'sendMessage',
    {
      message: { role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text }], ...given },
      configuration: { wait: true },
    },
    { owner },
  )
const list = (owner: string, params: Partial<Calls['listTasks']['params']> = {}) =>
  resultOf(agent, 'listTasks', { limit: 50, order: 'status', count: true, ...params }, { owner })
const idsIn = ({ items }: { items: { id: string }[] }) => items.map(({ id }) => id)

test('the newest status comes first, with a total for the owner and the filter', async () => {
  const paused = await send('ann', 'ask')
  const done = await send('ann', 'hello')
  await send('ben', 'hello')
  expect(idsIn(await list('ann'))).toEqual([done.id, paused.id])
  const ended = await send('ann', 'this', { taskId: paused.id })
  expect(await list('ann')).toMatchObject({ items: [{ id: paused.id }, { id: done.id }], total: 2 })
  expect(idsIn(await list('ann', { order: 'created' }))).toEqual([done.id, paused.id])
  const since = { statusSince: ended.status.timestamp }
  expect(await list('ann', since)).toMatchObject({ items: [{ id: paused.id }], total: 1 })
  // The order by status is implied.
  const { items } = await resultOf(agent, 'listTasks', { limit: 9, ...since }, { owner: 'ann' })
  expect(items.map(({ id }) => id)).toEqual([paused.id])
  expect(await list('ann', { states: ['failed'] })).toMatchObject({ items: [], total: 0 })
  expect(await list('ann', { limit: 1 })).toMatchObject({ total: 2, nextCursor: expect.any(String) })
})

test('without artifacts, large parts are not read and small ones are left out', async () => {
  const task = await send('cleo', 'large')
  const { items } = await list('cleo', { includeArtifacts: false, historyLength: 0 })
  expect(items).toMatchObject([{ id: task.id, artifacts: [], history: [] }])
  const [whole] = (await list('cleo')).items
  expect(whole?.artifacts[0]?.parts[0]).toBeInstanceOf(LazyPart)
})

test('a cursor of another order or owner is refused', async () => {
  await send('dora', 'one')
  await send('dora', 'two')
  const { nextCursor: cursor = '' } = await list('dora', { limit: 1 })
  const refused = { error: 'InvalidParams', data: { issues: [{ path: 'cursor' }] } }
  await expect(list('dora', { cursor, order: 'created' })).rejects.toMatchObject(refused)
  await expect(list('ann', { cursor })).rejects.toMatchObject(refused)
  expect((await list('dora', { cursor })).items).toHaveLength(1)
})

test('tasks of one context show the name that its client gave it, whatever the dialect of their messages', async () => {
  const { id: contextId, name = '' } = idsOf('emil')('my context/1')
  const first = await send('emil', 'hello', { contextId, contextName: name })
  expect(first).toMatchObject({ contextId, contextName: 'my context/1' })
  // Another dialect knows only the UUID.
  const second = await send('emil', 'ask', { contextId })
  expect(second).toMatchObject({ contextId, contextName: 'my context/1' })
  expect(second.history[0]).toMatchObject({ contextName: 'my context/1' })
  expect(second.status.message).toMatchObject({ contextName: 'my context/1' })
  const third = await send('emil', 'this', { taskId: second.id })
  expect(third).toMatchObject({ contextId, contextName: 'my context/1', status: { state: 'completed' } })
  expect((await list('emil', { contextId })).items.map(({ contextName }) => contextName)).toEqual([
    'my context/1',
    'my context/1',
  ])
  const unnamed = await send('emil', 'hello', { contextId: randomUUID() })
  expect(unnamed).not.toHaveProperty('contextName')
  const events = await callModel(
    agent,
    'resubscribe',
    { taskId: third.id, afterSequence: 0 },
    { owner: 'emil' },
  )
  if (!('items' in events)) throw new Error('no stream')
  for await (const event of events.items) expect(event).toMatchObject({ contextName: 'my context/1' })
})
