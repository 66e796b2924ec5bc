import { expect, test } from 'vitest'
import { idsOf } from '../../model/ids.ts'
import { a2aV1 } from './dialect.ts'
import {
  artifact,
  artifactUpdate,
  message,
  messageJson,
  received,
  statusUpdate,
  task,
  taskId,
  taskJson,
} from './sample.cases.ts'

const ids = idsOf('client')
/** A reader does not convert the IDs of another server. Times have milliseconds on the wire. */
const time = '2026-11-22T08:39:37.397000+00:00'
const { messageName: _messageName, contextName: _contextName, ...unnamed } = message
const readMessage = { ...unnamed, messageId: 'msg-1', contextId: 'talk/1' }
const readTask = {
  id: taskId,
  contextId: 'talk/1',
  status: { state: 'completed', timestamp: time, message: { ...readMessage, role: 'agent' } },
  history: [readMessage],
  artifacts: [artifact],
}

test('a client reads a task with its history and artifacts', () => {
  expect(a2aV1.readTask(taskJson)).toEqual(readTask)
  expect(a2aV1.readTaskOutput(taskJson)).toEqual({ ...readTask, history: [] })
})

test('snake_case and numbers of enums are read, and absent fields have their defaults', () => {
  const json = {
    id: 't',
    context_id: 'c',
    status: { state: 3, timestamp: '2026-11-22T08:39:37.397Z' },
    kind: 'task',
  }
  const done = { state: 'completed', timestamp: time }
  expect(a2aV1.readTask(json)).toEqual({ id: 't', contextId: 'c', status: done, history: [], artifacts: [] })
  expect(a2aV1.readTask({ id: 't', status: {}, artifacts: [{ artifactId: 'a' }] })).toMatchObject({
    contextId: '',
    status: { state: 'working' },
    artifacts: [{ artifactId: 'a', name: '', parts: [] }],
  })
})

test.each([
  ['no task', 'task'],
  ['no ID', { status: { state: 1 } }],
  ['a state of a later version', { id: 't', status: { state: 'TASK_STATE_PAUSED' } }],
  [
    'too many artifacts',
    { id: 't', status: {}, artifacts: Array.from({ length: 1001 }, () => ({ artifactId: 'a', parts: [] })) },
  ],
  ['a part without content', { id: 't', status: {}, artifacts: [{ artifactId: 'a', parts: [{}] }] }],
  ['an ID without end', { id: 'x'.repeat(5000), status: {} }],
])('a task of another server is not read with %s', (_, json) => {
  expect(a2aV1.readTask(json)).toBeUndefined()
  expect(a2aV1.readSendResult({ task: json })).toBeUndefined()
})

test('a URL that is not of the web becomes a text, so that no reader follows it', () => {
  const artifacts = [{ artifactId: 'a', parts: [{ url: 'javascript:alert(1)', filename: 'x' }] }]
  expect(a2aV1.readTask({ id: 't', status: {}, artifacts })?.artifacts[0]?.parts).toEqual([
    { kind: 'text', text: 'javascript:alert(1)', mediaType: 'text/uri-list', filename: 'x' },
  ])
})

test('the answer to a message is read as a task or as a message', () => {
  expect(a2aV1.readSendResult({ task: taskJson })).toEqual({ kind: 'task', task: readTask })
  expect(a2aV1.readSendResult({ message: messageJson })).toEqual({ kind: 'message', message: readMessage })
  const short = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'x' }] }
  expect(a2aV1.readSendResult({ message: short })).toEqual({
    kind: 'message',
    message: {
      messageId: 'm',
      contextId: '',
      taskId: '',
      role: 'agent',
      parts: [{ kind: 'text', text: 'x' }],
    },
  })
  for (const json of [{}, [], null, taskJson, { message: {} }])
    expect(a2aV1.readSendResult(json)).toBeUndefined()
})

test('frames are read with and without an envelope, and so are webhook bodies', () => {
  const stream = a2aV1.openStream(7)
  const task1 = received(stream.write({ kind: 'present-task', task, sequence: 1 }).data)
  expect(a2aV1.readFrame(task1)).toEqual({ kind: 'task', task: readTask })
  const status = { taskId, contextId: 'talk/1', status: { state: 'working', timestamp: time } }
  expect(a2aV1.readFrame(received(stream.write(statusUpdate).data))).toEqual({
    kind: 'status-update',
    ...status,
  })
  expect(a2aV1.readFrame(JSON.parse(a2aV1.writeWebhook(artifactUpdate, task)))).toEqual({
    kind: 'artifact-update',
    taskId,
    contextId: 'talk/1',
    artifact,
    append: false,
    lastChunk: true,
  })
  expect(a2aV1.readFrame({ message: messageJson })).toEqual({ kind: 'message', message: readMessage })
  expect(a2aV1.readFrame({ jsonrpc: '2.0', id: 1, error: { code: -32001, message: 'no' } })).toMatchObject({
    kind: 'error',
    error: { error: 'TaskNotFound' },
  })
  for (const json of [{}, 7, null, { jsonrpc: '2.0', id: 1, result: {} }, { statusUpdate: { status: {} } }])
    expect(a2aV1.readFrame(json)).toBeUndefined()
})

test('a gateway reads the IDs of every answer and converts those that the client chose', () => {
  const expected = { taskId, contextId: ids('talk/1').id }
  const stream = a2aV1.openStream(7)
  for (const json of [
    taskJson,
    { task: taskJson },
    { message: messageJson },
    stream.write({ kind: 'present-task', task, sequence: 1 }).data,
    stream.write(statusUpdate).data,
    stream.write(artifactUpdate).data,
  ])
    expect(a2aV1.readTaskReference(received(json), ids)).toEqual(expected)
  expect(a2aV1.readTaskReference([], ids)).toBeUndefined()
})

test('the end of a task is read from its answers and from the last frame', () => {
  const end = { state: 'completed', at: Date.parse(time) }
  expect(a2aV1.readEnd(taskJson)).toEqual(end)
  expect(a2aV1.readEnd({ task: taskJson })).toEqual(end)
  expect(a2aV1.readEnd({ status: { state: 'TASK_STATE_FAILED' } })).toEqual({ state: 'failed' })
  expect(a2aV1.readEnd({ status: { state: 'TASK_STATE_CANCELED' } })).toBeUndefined()
  const stream = a2aV1.openStream(7)
  const last = { ...statusUpdate, status: { state: 'failed', timestamp: time } } as const
  expect(a2aV1.readStreamEnd(stream.write(last).data)).toEqual({ state: 'failed', at: Date.parse(time) })
  expect(a2aV1.readStreamEnd(stream.write(statusUpdate).data)).toBeUndefined()
  expect(a2aV1.readStreamEnd(stream.write({ kind: 'present-task', task, sequence: 1 }).data)).toEqual(end)
  for (const json of [null, 'x', {}]) expect(a2aV1.readStreamEnd(json)).toBeUndefined()
})

test('a gateway reads the IDs in the params of a message', () => {
  const params = { message: { task_id: taskId, contextId: 'talk/1', referenceTaskIds: ['a'] } }
  expect(a2aV1.readMessageIds(params, ids)).toEqual({ taskId, contextId: ids('talk/1').id })
  expect(a2aV1.readMessageIds({ message: { taskId: 7, contextId: '' } }, ids)).toEqual({})
  expect(a2aV1.readMessageIds(undefined, ids)).toEqual({})
  expect(a2aV1.readReferences(params)).toEqual(['a'])
  expect(a2aV1.readReferences({ message: { referenceTaskIds: 'a' } })).toEqual([])
})

test('lists of several agents are merged into one page', () => {
  const result = { tasks: [taskJson], nextPageToken: 'n', pageSize: 1, totalSize: 9 }
  const read = a2aV1.readList('listTasks', result, {})
  expect(read).toEqual({
    items: [{ id: taskId, at: '2026-11-22T08:39:37.397Z', json: taskJson }],
    nextCursor: 'n',
    total: 9,
  })
  expect(a2aV1.readList('listTasks', { nextPageToken: '' }, {})).toEqual({ items: [] })
  expect(a2aV1.readList('listTasks', [], {})).toBeUndefined()
  expect(a2aV1.readList('listContexts', result, {})).toBeUndefined()
  const page = { limit: 5, total: 11 }
  expect(a2aV1.writeMergedList('listTasks', [taskJson], page).json).toEqual({
    tasks: [taskJson],
    nextPageToken: '',
    pageSize: 5,
    totalSize: 11,
  })
})

test('updates in the form of 0.3, as LangGraph sends them, are read', () => {
  const ids = { taskId: 'c:t', contextId: 'c' }
  const parts = [{ kind: 'text', text: 'Hi' }]
  const done = { ...ids, kind: 'status-update', status: { state: 'TASK_STATE_COMPLETED' }, final: true }
  expect(a2aV1.readFrame({ jsonrpc: '2.0', id: '1', result: done })).toMatchObject({
    kind: 'status-update',
    taskId: 'c:t',
    status: { state: 'completed' },
  })
  const artifact = { ...ids, kind: 'artifact-update', artifact: { artifactId: 'a', parts }, append: false }
  expect(a2aV1.readFrame({ jsonrpc: '2.0', id: '1', result: artifact })).toMatchObject({
    kind: 'artifact-update',
    artifact: { artifactId: 'a', parts: [{ kind: 'text', text: 'Hi' }] },
  })
})
