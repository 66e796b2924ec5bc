import { expect, test } from 'vitest'
import { idsOf } from '../../model/ids.ts'
import {
  readEnd,
  readFrame,
  readMessageIds,
  readReferences,
  readSendResult,
  readStreamEnd,
  readTask,
  readTaskOutput,
  readTaskReference,
} from './answers.ts'

const ids = idsOf('alice')
const at = '2026-11-22T08:39:37.397Z'
const stored = '2026-11-22T08:39:37.397000+00:00'

/** As a server of a2a-js 0.3 writes it. */
const wire = {
  kind: 'task',
  id: 'task-1',
  contextId: 'ctx',
  status: {
    state: 'completed',
    timestamp: at,
    message: {
      kind: 'message',
      role: 'agent',
      messageId: 'm2',
      parts: [{ kind: 'text', text: 'done' }],
      taskId: 'task-1',
      contextId: 'ctx',
    },
  },
  history: [{ kind: 'message', role: 'user', messageId: 'm1', parts: [{ kind: 'text', text: 'go' }] }],
  artifacts: [
    {
      artifactId: 'a1',
      name: 'result',
      description: 'The result',
      parts: [
        { kind: 'data', data: { n: 1 } },
        { kind: 'file', file: { name: 'x.txt', mimeType: 'text/plain', bytes: 'aGk=' } },
      ],
    },
  ],
  metadata: { other: true },
}
const model = {
  id: 'task-1',
  contextId: 'ctx',
  status: {
    state: 'completed',
    timestamp: stored,
    message: {
      role: 'agent',
      messageId: 'm2',
      parts: [{ kind: 'text', text: 'done' }],
      taskId: 'task-1',
      contextId: 'ctx',
    },
  },
  history: [
    { role: 'user', messageId: 'm1', parts: [{ kind: 'text', text: 'go' }], taskId: '', contextId: '' },
  ],
  artifacts: [
    {
      artifactId: 'a1',
      name: 'result',
      description: 'The result',
      parts: [
        { kind: 'data', data: { n: 1 } },
        { kind: 'file', file: { name: 'x.txt', mimeType: 'text/plain', bytes: 'aGk=' } },
      ],
    },
  ],
}

test('a task of another server is read with its own IDs', () => {
  expect(readTask(wire)).toEqual(model)
  expect(readTaskOutput(wire)).toEqual({ ...model, history: [] })
  expect(readSendResult(wire)).toEqual({ kind: 'task', task: model })
})

test('a task in the spelling of the reference implementation, with nulls and without kind, is read', () => {
  const task = {
    id: 'task-1',
    context_id: 'ctx',
    status: { state: 'input-required', timestamp: '2026-11-22T09:39:37.397708+01:00', message: null },
    history: null,
    artifacts: [
      {
        artifact_id: 'a',
        name: null,
        parts: [{ kind: 'file', file: { mime_type: 'x/y', uri: 'https://a.example' } }],
      },
    ],
    metadata: null,
  }
  expect(readTask(task)).toEqual({
    id: 'task-1',
    contextId: 'ctx',
    status: { state: 'input-required', timestamp: '2026-11-22T08:39:37.397708+00:00' },
    history: [],
    artifacts: [
      {
        artifactId: 'a',
        name: '',
        parts: [{ kind: 'file', file: { mimeType: 'x/y', uri: 'https://a.example' } }],
      },
    ],
  })
})

test('parts of version 0.1, which have a type, are read', () => {
  const message = { role: 'agent', parts: [{ type: 'text', text: 'hi', metadata: null }] }
  expect(readSendResult(message)).toEqual({
    kind: 'message',
    message: {
      role: 'agent',
      parts: [{ kind: 'text', text: 'hi' }],
      messageId: '',
      contextId: '',
      taskId: '',
    },
  })
})

test('the unknown state counts as working, and an absent or malformed time is the present', () => {
  const before = Date.now() - 1
  const { status } =
    readTask({ id: 't', contextId: 'c', status: { state: 'unknown', timestamp: 'today' } }) ?? {}
  expect(status?.state).toBe('working')
  expect(Date.parse(status?.timestamp ?? '')).toBeGreaterThanOrEqual(before)
})

test('a URI that is not of the web becomes a text', () => {
  const parts = [
    { kind: 'file', file: { uri: 'file:///etc/passwd' }, metadata: { a: 1 } },
    { kind: 'file', file: { bytes: 'aGk=', uri: 'gs://bucket/x' } },
  ]
  const answer = readSendResult({ role: 'agent', parts, messageId: 'm' })
  expect(answer).toMatchObject({
    message: {
      parts: [
        { kind: 'text', text: 'file:///etc/passwd', mediaType: 'text/uri-list', metadata: { a: 1 } },
        { kind: 'file', file: { bytes: 'aGk=' } },
      ],
    },
  })
})

test.each<[string, unknown]>([
  ['null', null],
  ['a text', 'task'],
  ['an array', [wire]],
  ['a task without ID', { ...wire, id: undefined }],
  ['a task with a long ID', { ...wire, id: 'x'.repeat(2000) }],
  ['a state of another version', { ...wire, status: { state: 'TASK_STATE_COMPLETED' } }],
  [
    '10,000 parts',
    {
      ...wire,
      artifacts: [
        { artifactId: 'a', parts: Array.from({ length: 10_000 }, () => ({ kind: 'text', text: '' })) },
      ],
    },
  ],
  [
    'a file without content',
    { ...wire, artifacts: [{ artifactId: 'a', parts: [{ kind: 'file', file: {} }] }] },
  ],
  ['an envelope of 1.0', { task: wire }],
])('%s is not a task', (_, json) => {
  expect(readTask(json)).toBeUndefined()
  expect(readSendResult(json)).toBeUndefined()
})

const rpc = (result: unknown) => ({ jsonrpc: '2.0', id: 3, result })
const { status } = wire

test.each([
  ['with', rpc],
  ['without', (result: unknown) => result],
])('frames %s a JSON-RPC envelope are read', (_, wrap) => {
  expect(readFrame(wrap(wire))).toEqual({ kind: 'task', task: model })
  expect(readFrame(wrap(wire.status.message))).toEqual({ kind: 'message', message: model.status.message })
  expect(
    readFrame(wrap({ kind: 'status-update', taskId: 'task-1', contextId: 'ctx', status, final: true })),
  ).toEqual({ kind: 'status-update', taskId: 'task-1', contextId: 'ctx', status: model.status })
  const [artifact] = wire.artifacts
  const update = { kind: 'artifact-update', taskId: 'task-1', contextId: 'ctx', artifact }
  const read = { ...update, artifact: model.artifacts[0] }
  expect(readFrame(wrap(update))).toEqual({ ...read, append: false, lastChunk: true })
  expect(readFrame(wrap({ ...update, append: true, lastChunk: false }))).toEqual({
    ...read,
    append: true,
    lastChunk: false,
  })
})

test('an error in a stream is read, and other JSON is not a frame', () => {
  const error = { code: -32001, message: 'gone' }
  expect(readFrame({ jsonrpc: '2.0', id: 3, error })).toMatchObject({
    kind: 'error',
    error: { error: 'TaskNotFound', message: 'gone' },
  })
  for (const other of [null, 'x', {}, rpc(null), rpc({ kind: 'status-update' })])
    expect(readFrame(other)).toBeUndefined()
})

test('references of tasks, updates and messages are read, and contexts are converted', () => {
  const reference = { taskId: 't', contextId: ids('my context').id }
  expect(readTaskReference({ kind: 'task', id: 't', contextId: 'my context' }, ids)).toEqual(reference)
  expect(readTaskReference(rpc({ taskId: 't', contextId: 'my context' }), ids)).toEqual(reference)
  expect(readTaskReference({ id: 't', context_id: 'my context' }, ids)).toEqual(reference)
  expect(readTaskReference('t', ids)).toBeUndefined()
})

test('the end of a task is read from its status, and from the last frame of a stream', () => {
  const end = { state: 'completed', at: Date.parse(at) }
  expect(readEnd(wire)).toEqual(end)
  expect(readEnd({ status: { state: 'failed' } })).toEqual({ state: 'failed' })
  expect(readEnd({ status: { state: 'canceled', timestamp: at } })).toBeUndefined()
  expect(readStreamEnd(rpc({ kind: 'status-update', status, final: true }))).toEqual(end)
  expect(readStreamEnd(rpc({ kind: 'status-update', status, final: false }))).toBeUndefined()
  expect(readStreamEnd(rpc(wire))).toEqual(end)
})

test('the IDs of a sent message are converted, and malformed ones count as absent', () => {
  const taskId = '01A20384-dd0f-75de-ac3f-6eb02a231f82'
  expect(readMessageIds({ message: { taskId, contextId: 'a:b' } }, ids)).toEqual({
    taskId: taskId.toLowerCase(),
    contextId: ids('a:b').id,
  })
  expect(readMessageIds({ message: { taskId: '', contextId: 1 } }, ids)).toEqual({})
  expect(readMessageIds(undefined, ids)).toEqual({})
  expect(readReferences({ message: { referenceTaskIds: ['a', 'b'] } })).toEqual(['a', 'b'])
  expect(readReferences({ message: { referenceTaskIds: [1] } })).toEqual([])
})
