import { expect, test } from 'vitest'
import type { StreamItem } from '../../model/event.ts'
import type { Task, TaskState } from '../../model/task.ts'
import { openStream } from './frames.ts'

const timestamp = '2026-11-22T08:39:37.397708+00:00'
const ids = { taskId: 't', contextId: 'c', contextName: 'my context' }
const envelope = { ...ids, eventId: 'e', timestamp }
const artifact = (text: string) => ({
  artifactId: 'a',
  name: 'result',
  parts: [{ kind: 'text' as const, text }],
})
const task: Task = {
  id: 't',
  contextId: 'c',
  contextName: 'my context',
  status: { state: 'submitted', timestamp },
  history: [],
  artifacts: [],
}
const status = (sequence: number, state: TaskState): StreamItem => ({
  ...envelope,
  kind: 'status-update',
  sequence,
  status: { state, timestamp },
  final: false,
})
const delta = (text: string): StreamItem => ({
  kind: 'artifact-delta',
  ...ids,
  timestamp,
  artifact: artifact(text),
})

function frames(items: StreamItem[]) {
  const writer = openStream(7)
  return items.map((item) => JSON.parse(JSON.stringify(writer.write(item))))
}

test('each frame is a JSON-RPC response to the request, and the first one holds the task', () => {
  const [first] = frames([{ kind: 'present-task', task, sequence: 0 }])
  expect(first).toEqual({
    id: 0,
    data: {
      jsonrpc: '2.0',
      id: 7,
      result: {
        kind: 'task',
        id: 't',
        contextId: 'my context',
        status: { state: 'submitted', timestamp },
        history: [],
        artifacts: [],
      },
    },
  })
})

test.each<[TaskState, string, boolean]>([
  ['working', 'working', false],
  ['input-required', 'input-required', true],
  ['auth-required', 'auth-required', true],
  ['payment-required', 'input-required', true],
  ['negotiation-bid-submitted', 'input-required', true],
  ['completed', 'completed', true],
  ['canceled', 'canceled', true],
])('the update to %s has the state %s and final %s', (state, wire, final) => {
  const [frame] = frames([status(3, state)])
  expect(frame).toMatchObject({
    id: 3,
    data: {
      jsonrpc: '2.0',
      id: 7,
      result: {
        kind: 'status-update',
        taskId: 't',
        contextId: 'my context',
        status: { state: wire, timestamp },
        final,
      },
    },
  })
})

test.each([
  ['payment-required', 'x402.payment.status', 'payment-required'],
  ['negotiation-bid-submitted', 'parley.negotiation.status', 'bid-submitted'],
] as const)('the message of %s states in its metadata what the task waits for', (state, key, value) => {
  const [frame] = frames([status(3, state)])
  expect(frame.data.result.status.message).toMatchObject({
    kind: 'message',
    role: 'agent',
    taskId: 't',
    contextId: 'my context',
    metadata: { [key]: value },
  })
})

test('deltas are appended to the first, and the whole artifact replaces them', () => {
  const whole: StreamItem = {
    ...envelope,
    kind: 'artifact-update',
    sequence: 2,
    artifact: artifact('one two'),
  }
  const written = frames([delta('one '), delta('two'), whole])
  expect(
    written.map(({ id, data: { result } }) => [id, result.append, result.lastChunk, result.artifact]),
  ).toEqual([
    [undefined, false, false, artifact('one ')],
    [undefined, true, false, artifact('two')],
    [2, false, true, artifact('one two')],
  ])
})
