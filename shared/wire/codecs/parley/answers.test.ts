import { expect, test } from 'vitest'
import type { Artifact, Task } from '../../model/task.ts'
import { readEnd, readList, readSendResult, readStreamEnd, readTask, readTaskReference } from './answers.ts'
import { openStream, readFrame } from './frames.ts'
import { taskOut } from './task.ts'

const at = '2026-11-22T08:39:37.397708+00:00'

test.each([
  ['a running task', { status: { state: 'working', timestamp: at } }, undefined],
  ['a canceled task', { status: { state: 'canceled', timestamp: at } }, undefined],
  [
    'a completed task',
    { status: { state: 'completed', timestamp: at } },
    { state: 'completed', at: Date.parse(at) },
  ],
  ['a failed task without a time', { status: { state: 'failed' } }, { state: 'failed' }],
  ['a text', 'completed', undefined],
  ['a status that is not an object', { status: 'failed' }, undefined],
])('reads the end of %s', (_, result, end) => {
  expect(readEnd(result)).toEqual(end)
  expect(readStreamEnd(result)).toBeUndefined()
  expect(readStreamEnd(Object.assign(Object(result), { final: true }))).toEqual(end)
})

test('reads the reference of a task and of an event in either spelling', () => {
  const reference = { taskId: 't', contextId: 'c' }
  expect(readTaskReference({ id: 't', context_id: 'c' })).toEqual(reference)
  expect(readTaskReference({ id: 't', contextId: 'c' })).toEqual(reference)
  expect(readTaskReference({ task_id: 't', context_id: 'c' })).toEqual(reference)
  expect(readTaskReference([])).toBeUndefined()
})

test('a task without a creation time is sorted by the time of its status', () => {
  const old = { id: 't', status: { timestamp: at } }
  const task = { id: 't', created_at: '1', status: {} }
  const context = { context_id: 'c', updated_at: at }
  expect(readList('listTasks', [old, task], {})?.items).toEqual([
    { id: 't', at, json: old },
    { id: 't', at: '1', json: task },
  ])
  expect(readList('listContexts', [context], {})?.items).toEqual([{ id: 'c', at, json: context }])
  expect(readList('listTasks', {}, {})).toBeUndefined()
})

const context = { contextId: '5d2d1a83-4a2b-4bb5-8dd1-0f8a3a6a2c11' }
const taskId = '0f2d1a83-4a2b-4bb5-8dd1-0f8a3a6a2c22'
const message = {
  ...context,
  taskId,
  role: 'agent',
  messageId: '1f2d1a83-4a2b-4bb5-8dd1-0f8a3a6a2c33',
  parts: [{ kind: 'text', text: 'half' }],
} as const satisfies object
const report: Artifact = {
  artifactId: 'a',
  name: 'report',
  description: 'The figures',
  parts: [{ kind: 'file', file: { mimeType: 'image/png', bytes: 'AAAA' } }],
  metadata: { page: 1 },
}
const task: Task = {
  ...context,
  id: taskId,
  status: { state: 'completed', timestamp: at, message: { ...message, parts: [...message.parts] } },
  history: [{ ...message, role: 'user', parts: [...message.parts] }],
  artifacts: [report],
}
const sent = (json: unknown): unknown => JSON.parse(JSON.stringify(json))

test('a client reads a task as its server wrote it', () => {
  expect(readTask(sent(taskOut(task)))).toEqual(task)
  expect(readSendResult(sent(taskOut(task)))).toEqual({ kind: 'task', task })
  expect(readTask({ ...task, artifacts: 'none' })).toBeUndefined()
})

test('an answer that is a message instead of a task is read as a message', () => {
  const bare = { role: 'agent', parts: message.parts, message_id: 'm-1' }
  expect(readSendResult(bare)).toEqual({
    kind: 'message',
    message: { role: 'agent', parts: message.parts, messageId: 'm-1', contextId: '', taskId: '' },
  })
  expect(readSendResult({ role: 'robot' })).toBeUndefined()
})

test('a client reads the frames of a stream as its server wrote them', () => {
  const writer = openStream()
  const frame = { ...context, taskId, artifact: report, timestamp: at }
  expect(readFrame(sent(writer.write({ ...frame, kind: 'artifact-delta' }).data))).toEqual({
    ...context,
    taskId,
    kind: 'artifact-update',
    artifact: frame.artifact,
    append: false,
    lastChunk: false,
  })
  expect(readFrame(sent(writer.write({ kind: 'present-task', task, sequence: 4 }).data))).toEqual({
    ...context,
    taskId,
    kind: 'status-update',
    status: task.status,
  })
  expect(readFrame({ kind: 'status-update', task_id: taskId, context_id: 'c', status: 1 })).toBeUndefined()
  expect(readFrame({ error: { code: -32001, message: 'x'.repeat(5000) } })).toMatchObject({
    kind: 'error',
    error: { error: 'TaskNotFound', message: 'x'.repeat(1000) },
  })
})

test('the media type and the file name of a text part are left out', () => {
  const hinted: Task = {
    ...task,
    artifacts: [
      {
        artifactId: 'a',
        name: '',
        parts: [{ kind: 'text', text: '#', mediaType: 'text/markdown', filename: 'a.md' }],
      },
    ],
  }
  expect(taskOut(hinted).artifacts).toEqual([
    { artifact_id: 'a', name: '', parts: [{ kind: 'text', text: '#' }] },
  ])
})
