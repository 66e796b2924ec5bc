import { randomUUID } from 'node:crypto'
import type { WireEvent } from '@parley/client/internal/client'
import type { InProcessEventBus } from '@parley/engine/events/in-process'
import { raw, rpc } from '@parley/tools/testing/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

let agent: TestAgent
beforeAll(async () => {
  agent = await testAgent({
    async *handle({ text, ask, requireAuth, bid, decline, history, signal }) {
      const [kind, count] = text.split(' ')
      if (kind === 'pieces')
        for (let i = 0; i < Number(count); i += 1) {
          yield `${i} `
          await new Promise((resolve) => setImmediate(resolve))
        }
      if (kind === 'ask' && history.length === 1) return ask('what?')
      if (kind === 'auth') return requireAuth('log in')
      if (kind === 'bid' && history.length === 1) return bid({ amount: '1.50', latencyMs: 10, note: 'cheap' })
      if (kind === 'decline') return decline('not today')
      if (kind === 'wait') await new Promise((resolve) => signal.addEventListener('abort', resolve))
      if (kind === 'throw') throw new Error('it broke')
      return 'end'
    },
  })
})
afterAll(() => agent[Symbol.asyncDispose]())

interface Frame {
  id: string | undefined
  data: WireEvent
}

const framesOf = (text: string): Frame[] =>
  text
    .split('\n\n')
    .filter((block) => block.includes('data: '))
    .map((block) => ({
      id: /^id: (.*)$/m.exec(block)?.[1],
      data: JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? 'null') as WireEvent,
    }))

const stream = async (text: string, headers: Record<string, string> = {}) => {
  const answer = await rpc(
    agent,
    'message/stream',
    { message: aMessage(text) },
    { token: agent.caller('alice').token, headers },
  )
  return { ...answer, frames: framesOf(answer.text) }
}
const resubscribe = async (params: object, headers: Record<string, string> = {}) => {
  const answer = await rpc(agent, 'tasks/resubscribe', params, {
    token: agent.caller('alice').token,
    headers,
  })
  return { ...answer, frames: framesOf(answer.text) }
}
const aMessage = (text: string, more: object = {}) => ({
  role: 'user',
  kind: 'message',
  messageId: randomUUID(),
  parts: [{ kind: 'text', text }],
  ...more,
})
const isDelta = ({ data }: Frame) => data.kind === 'artifact-update' && data.last_chunk === false
const brief = ({ id, data }: Frame) => [id, data.kind === 'status-update' ? data.status.state : 'artifact']
const topics = () => (agent.app.services.bus as InProcessEventBus).topics

test('a stream sends the current status (submitted, 0), working, deltas, the finished artifact and the terminal status', async () => {
  const { status, headers, frames } = await stream('pieces 20')
  expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  expect(headers.get('cache-control')).toBe('no-store')
  expect(frames.filter((frame) => !isDelta(frame)).map(brief)).toEqual([
    ['0', 'submitted'],
    ['1', 'working'],
    ['2', 'artifact'],
    ['3', 'completed'],
  ])
  for (const { id, data } of frames.filter((frame) => !isDelta(frame))) expect(String(data.sequence)).toBe(id)
  expect(frames[0]?.data).not.toHaveProperty('event_id')
  expect(frames.at(-1)?.data).toMatchObject({ final: true })
  expect(frames[1]?.data).toMatchObject({ final: false, event_id: expect.any(String) })
})

test('the first delta of an artifact has append: false; later deltas have append: true', async () => {
  const appended = (await stream('pieces 20')).frames
    .filter(isDelta)
    .map(({ data }) => data.kind === 'artifact-update' && data.append)
  expect(appended.length).toBeGreaterThan(1)
  expect(appended).toEqual([false, ...appended.slice(1).map(() => true)])
})

test('deltas have no id, event_id or sequence; the finished artifact replaces them', async () => {
  const { frames } = await stream('pieces 20')
  const deltas = frames.filter(isDelta)
  const finished = frames.find(({ data }) => data.kind === 'artifact-update' && data.last_chunk === true)
  expect(deltas.length).toBeGreaterThan(0)
  for (const { id, data } of deltas) {
    expect(id).toBeUndefined()
    expect(data).not.toHaveProperty('event_id')
    expect(data).not.toHaveProperty('sequence')
    expect(data).toMatchObject({ append: expect.any(Boolean), last_chunk: false })
  }
  const text = ({ data }: Frame) =>
    data.kind === 'artifact-update' ? (data.artifact.parts[0] as { text: string }).text : ''
  expect(deltas.map(text).join('')).toBe(text(finished as Frame))
  expect(finished?.data).toMatchObject({ append: false, last_chunk: true, event_id: expect.any(String) })
  const ids = new Set(
    [...deltas, finished as Frame].map(
      ({ data }) => data.kind === 'artifact-update' && data.artifact.artifact_id,
    ),
  )
  expect(ids.size).toBe(1)
})

test.each([
  ['ask', 'input-required', false],
  ['auth', 'auth-required', false],
  ['bid', 'negotiation-bid-submitted', false],
  ['decline', 'rejected', true],
  ['throw', 'failed', true],
])('a task that pauses or ends (%s) ends its stream with %s', async (text, state, final) => {
  const { frames } = await stream(text)
  expect(frames.map(brief)).toEqual([
    ['0', 'submitted'],
    ['1', 'working'],
    ['2', state],
  ])
  expect(frames.at(-1)?.data).toMatchObject({ final, status: { message: { role: 'agent' } } })
})

test('message/stream to a paused task begins with `submitted` and the last event number, and the numbers continue', async () => {
  const alice = agent.caller('alice')
  const paused = await alice.sendAndWait('ask')
  const { text } = await rpc(
    agent,
    'message/stream',
    { message: aMessage('that', { taskId: paused.id }) },
    { token: alice.token },
  )
  expect(
    framesOf(text)
      .filter((frame) => !isDelta(frame))
      .map(brief),
  ).toEqual([
    ['2', 'submitted'],
    ['3', 'working'],
    ['4', 'artifact'],
    ['5', 'completed'],
  ])
})

test('tasks/resubscribe with after_sequence or Last-Event-ID sends each later event once', async () => {
  const task = await agent.caller('alice').sendAndWait('pieces 3')
  const all = [
    ['1', 'working'],
    ['2', 'artifact'],
    ['3', 'completed'],
  ]
  for (let after = 0; after <= 3; after += 1) {
    expect((await resubscribe({ task_id: task.id, after_sequence: after })).frames.map(brief)).toEqual(
      all.slice(after),
    )
    expect(
      (await resubscribe({ id: task.id }, { 'last-event-id': String(after) })).frames.map(brief),
    ).toEqual(all.slice(after))
  }
  expect((await resubscribe({ task_id: task.id, after_sequence: 99 })).frames).toEqual([])
  expect((await resubscribe({ task_id: task.id })).frames.map(brief)).toEqual(all.slice(2))
  for (const odd of ['x', '-1', '1e3', '']) {
    expect((await resubscribe({ task_id: task.id }, { 'last-event-id': odd })).frames.map(brief)).toEqual(
      all.slice(2),
    )
  }
})

test('every read returns the same events with the same ids', async () => {
  const { frames } = await stream('pieces 3')
  const taskId = frames[0]?.data.task_id
  const again = (await resubscribe({ task_id: taskId, after_sequence: 0 })).frames
  expect(again).toEqual(frames.filter((frame) => !isDelta(frame)).slice(1))
})

test('followers that join a running task at any point miss and repeat no numbered event', async () => {
  const alice = agent.caller('alice')
  const task = await alice.send('pieces 200')
  const followers = await Promise.all(
    Array.from({ length: 12 }, async (_, i) =>
      (await resubscribe({ task_id: task.id, after_sequence: i % 3 })).frames
        .filter((frame) => !isDelta(frame))
        .map(({ id }) => id),
    ),
  )
  for (const [i, ids] of followers.entries()) expect(ids).toEqual(['1', '2', '3'].slice(i % 3))
  expect(topics()).toBe(0)
})

test('errors before the first frame are ordinary JSON-RPC responses', async () => {
  const refused = [
    await rpc(agent, 'message/stream', { message: {} }),
    await rpc(agent, 'message/stream', {
      message: aMessage('x'),
      configuration: { acceptedOutputModes: ['image/png'] },
    }),
    await rpc(agent, 'tasks/resubscribe', { task_id: randomUUID() }),
    await rpc(agent, 'tasks/resubscribe', { task_id: randomUUID(), after_sequence: -1 }),
  ]
  expect(
    refused.map(({ status, json, headers }) => [status, json.error.code, headers.get('content-type')]),
  ).toEqual(
    [
      [400, -32602],
      [400, -32005],
      [404, -32001],
      [400, -32602],
    ].map((row) => [...row, 'application/json; charset=utf-8']),
  )
})

test('both streaming methods receive -32004 from an agent with streaming: false', async () => {
  await using silent = await testAgent({ handle: () => 'x', capabilities: { streaming: false } })
  for (const method of ['message/stream', 'tasks/resubscribe']) {
    const { status, json } = await rpc(silent, method, { message: aMessage('x'), task_id: randomUUID() })
    expect([status, json.error.code]).toEqual([400, -32004])
  }
  expect(await silent.caller('alice').list()).toEqual([])
  expect(
    (await raw(silent, { method: 'GET', path: '/.well-known/agent.json' })).json.capabilities.streaming,
  ).toBe(false)
})

test('a reader that disconnects leaves no resources behind, and its task continues', async () => {
  const alice = agent.caller('alice')
  const abort = new AbortController()
  let taskId = ''
  await expect(
    (async () => {
      for await (const event of alice.stream('wait', undefined, { signal: abort.signal })) {
        taskId = event.task_id
        if (event.kind === 'status-update' && event.status.state === 'working') abort.abort()
      }
    })(),
  ).rejects.toMatchObject({ name: 'AbortError' })
  await expect.poll(topics).toBeLessThanOrEqual(1)
  expect((await alice.get(taskId)).status.state).toBe('working')
  await alice.cancel(taskId)
  await expect.poll(topics).toBe(0)
})

test('a cancellation ends the streams of all followers with `canceled`', async () => {
  const alice = agent.caller('alice')
  const following = stream('wait')
  await expect.poll(async () => (await alice.list({ state: 'working' })).length).toBe(1)
  const [task] = await alice.list({ state: 'working' })
  await alice.cancel(task?.id ?? '')
  expect((await following).frames.map(brief)).toEqual([
    ['0', 'submitted'],
    ['1', 'working'],
    ['2', 'canceled'],
  ])
})
