import { scriptedAgent } from '@parley/tools/testing/scripted-agent'
import {
  artifactEvent,
  artifactOf,
  delta,
  present,
  status,
  taskId,
  textPart,
} from '@parley/tools/testing/wire-samples'
import { expect, test } from 'vitest'
import { AgentClient, type WireEvent } from './client.ts'

const fast = { reconnectDelayMs: 1, reconnectMax: 3 }
const answer = artifactOf('a', 'answer', textPart('hi there'))

async function all(events: AsyncIterable<WireEvent>): Promise<WireEvent[]> {
  return Array.fromAsync(events)
}

test('a stream yields status, deltas and artifacts in order and ends with the task', async () => {
  const frames = [
    present(0, 'submitted'),
    status(1, 'working'),
    ': a comment\n\n',
    delta('a', 'hi '),
    delta('a', 'there'),
    artifactEvent(2, answer),
    status(3, 'completed'),
  ]
  await using agent = await scriptedAgent({ 'message/stream': () => ({ frames, after: 'silence' }) })
  const told = await all(new AgentClient({ url: agent.url }).stream('hello'))
  expect(told).toEqual(frames.filter((frame) => typeof frame === 'object'))
})

test('after a lost connection, the stream resumes without missing or repeating a numbered event', async () => {
  await using agent = await scriptedAgent({
    'message/stream': () => ({
      frames: [present(0, 'submitted'), status(1, 'working'), delta('a', 'hi ')],
      after: 'break',
    }),
    'tasks/resubscribe': ({ earlier }) =>
      earlier === 0
        ? { frames: [present(2, 'working'), artifactEvent(2, answer)], after: 'end' }
        : { frames: [present(2, 'working'), status(3, 'completed')] },
  })
  const told = await all(new AgentClient({ url: agent.url, ...fast }).stream('hello'))
  expect(told.map((event) => event.sequence)).toEqual([0, 1, undefined, 2, 3])
  expect(
    agent.calls.map(({ method, params, headers }) => [
      method,
      params.after_sequence,
      headers['last-event-id'],
    ]),
  ).toEqual([
    ['message/stream', undefined, undefined],
    ['tasks/resubscribe', 1, '1'],
    ['tasks/resubscribe', 2, '2'],
  ])
})

test.each([
  [
    'that has ended in the meantime',
    3,
    [present(3, 'completed'), artifactEvent(2, answer), status(3, 'completed')],
  ],
  ['that has ended and is known', 3, [present(3, 'completed')]],
  [
    'that goes on after a pause',
    3,
    [present(1, 'submitted'), artifactEvent(2, answer), status(3, 'completed')],
  ],
])(
  'a resumed stream that begins with the current status of a task %s loses no event',
  async (_, last, frames) => {
    const known = frames.length === 1 ? last : 1
    await using agent = await scriptedAgent({ 'tasks/resubscribe': () => ({ frames }) })
    const told = await all(new AgentClient({ url: agent.url, ...fast }).resubscribe(taskId, known))
    expect(told).toEqual(frames.slice(1))
    expect(agent.calls).toHaveLength(1)
  },
)

test('a first frame that reports an ended task ends the stream', async () => {
  await using agent = await scriptedAgent({
    'tasks/resubscribe': () => ({ frames: [present(7, 'failed')], after: 'silence' }),
  })
  expect(await all(new AgentClient({ url: agent.url }).resubscribe(taskId))).toEqual([present(7, 'failed')])
})

test('a pause ends the stream without a reconnection', async () => {
  const frames = [present(0, 'submitted'), status(1, 'working'), status(2, 'input-required', 'Which?')]
  await using agent = await scriptedAgent({ 'message/stream': () => ({ frames }) })
  expect(await all(new AgentClient({ url: agent.url }).stream('hello'))).toEqual(frames)
  expect(agent.calls).toHaveLength(1)
})

test('the stream limits its reconnections to a server that restarts (503) or stops responding', async () => {
  await using agent = await scriptedAgent({
    'tasks/resubscribe': ({ earlier }) =>
      earlier === 1
        ? { error: { code: -32042, message: 'Temporarily unavailable' }, status: 503 }
        : { frames: [status(1, 'working')], after: 'silence' },
  })
  const client = new AgentClient({ url: agent.url, ...fast, idleTimeoutMs: 30 })
  await expect(all(client.resubscribe(taskId))).rejects.toThrow(/idle for too long/)
  expect(agent.calls).toHaveLength(1 + fast.reconnectMax)
})

test('a stream that loses its connection before the first event throws and does not send the message again', async () => {
  await using agent = await scriptedAgent({ 'message/stream': () => ({ frames: [], after: 'break' }) })
  const failed = all(new AgentClient({ url: agent.url, ...fast }).stream('hello'))
  await expect(failed).rejects.toMatchObject({ name: 'ConnectionError' })
  expect(agent.calls).toHaveLength(1)
})

test('a stream throws an error response that precedes the first frame', async () => {
  const error = { code: -32008, message: 'Task has ended' }
  await using agent = await scriptedAgent({ 'message/stream': () => ({ error, status: 400 }) })
  await expect(all(new AgentClient({ url: agent.url }).stream('hello'))).rejects.toMatchObject(error)
})

test.each([
  ['a result instead of a stream', { result: 1 }, /not answered with an event stream/],
  ['a frame that is not JSON', { frames: ['data: {\n\n'] }, /not JSON/],
  ['a frame that is not an event', { frames: [{ kind: 'task' }] }, /not an event/],
  ['null as a frame', { frames: ['data: null\n\n'] }, /not an event/],
  ['a frame without end', { frames: [`data: ${'x'.repeat(5000)}`] }, /too large/],
])('%s throws a clear error without a second attempt', async (_, answer, text) => {
  await using agent = await scriptedAgent({ 'tasks/resubscribe': () => answer })
  const client = new AgentClient({ url: agent.url, ...fast, frameMaxChars: 4000 })
  await expect(all(client.resubscribe(taskId))).rejects.toThrow(text)
  expect(agent.calls).toHaveLength(1)
})

test('aborting the signal ends the stream', async () => {
  await using agent = await scriptedAgent({
    'tasks/resubscribe': () => ({ frames: [status(1, 'working')], after: 'silence' }),
  })
  const leave = new AbortController()
  const events = new AgentClient({ url: agent.url }).resubscribe(taskId, undefined, { signal: leave.signal })
  await events.next()
  leave.abort(new Error('enough'))
  await expect(events.next()).rejects.toThrow('enough')
})
