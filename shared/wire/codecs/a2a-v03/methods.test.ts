import { expect, test } from 'vitest'
import { ParleyError } from '../../errors.ts'
import { idsOf } from '../../model/ids.ts'
import type { Operation } from '../../model/operation.ts'
import type { Task } from '../../model/task.ts'
import { LazyPart, toLazyJson } from '../lazy-part.ts'
import { methodOf, methods, readParams, writeResult } from './methods.ts'
import { readTaskId } from './params.ts'
import { partOut } from './task.ts'

const ids = idsOf('alice')
const taskId = '01a20384-dd0f-75de-ac3f-6eb02a231f82'
const text = { kind: 'text', text: 'hello' }
const message = (more: object = {}) => ({
  kind: 'message',
  role: 'user',
  messageId: 'msg-1',
  parts: [text],
  ...more,
})
const read = (operation: Operation, params: Record<string, unknown>) => readParams(operation, params, ids)
const send = (params: Record<string, unknown>) => readParams('sendMessage', params, ids)

function failure(run: () => unknown): ParleyError {
  try {
    run()
  } catch (error) {
    if (error instanceof ParleyError) return error
    throw error
  }
  throw new Error('did not fail')
}

test('the methods are those of A2A 0.3', () => {
  expect([...methods.keys()].sort()).toEqual([
    'agent/getAuthenticatedExtendedCard',
    'message/send',
    'message/stream',
    'tasks/cancel',
    'tasks/get',
    'tasks/pushNotificationConfig/delete',
    'tasks/pushNotificationConfig/get',
    'tasks/pushNotificationConfig/list',
    'tasks/pushNotificationConfig/set',
    'tasks/resubscribe',
  ])
})

test.each<Operation>(['listTasks', 'giveFeedback', 'listTaskEvents', 'listContexts', 'clearContext'])(
  'there is no method for %s',
  (operation) => {
    expect(failure(() => methodOf(operation)).error).toBe('UnsupportedOperation')
  },
)

test('IDs of any characters become UUIDs that keep their names', () => {
  const given = { messageId: 'msg/1\u0000 ü', contextId: 'a:b' }
  expect(send({ message: message({ ...given, taskId: taskId.toUpperCase() }) })).toEqual({
    continues: true,
    pausesUnpaid: true,
    message: {
      role: 'user',
      parts: [text],
      messageId: ids(given.messageId).id,
      messageName: given.messageId,
      contextId: ids('a:b').id,
      contextName: 'a:b',
      taskId,
    },
    configuration: { wait: true },
  })
})

test('kind is optional, both spellings are read, and nulls and empty IDs count as absent', () => {
  const given = {
    role: 'user',
    message_id: taskId,
    context_id: '',
    task_id: null,
    reference_task_ids: [taskId],
    parts: [
      { ...text, metadata: null },
      { type: 'data', data: { a: 1 } },
      { kind: 'file', file: { mime_type: 'text/plain', bytes: 'aGk=' } },
    ],
    metadata: { a: 1 },
    extensions: ['urn:x'],
  }
  expect(send({ message: given }).message).toEqual({
    role: 'user',
    messageId: taskId,
    referenceTaskIds: [taskId],
    parts: [
      text,
      { kind: 'data', data: { a: 1 } },
      { kind: 'file', file: { mimeType: 'text/plain', bytes: 'aGk=' } },
    ],
    metadata: { a: 1 },
    extensions: ['urn:x'],
  })
})

test.each([
  [undefined, true],
  [{}, true],
  [{ blocking: null }, true],
  [{ blocking: true }, true],
  [{ blocking: false }, false],
])('with the configuration %j, wait is %s', (configuration, wait) => {
  expect(send({ message: message(), configuration }).configuration?.wait).toBe(wait)
})

test('the configuration has a history length and a webhook that keeps this dialect', () => {
  const configuration = {
    acceptedOutputModes: ['text/plain'],
    historyLength: 0,
    pushNotificationConfig: { url: 'https://r.example', token: 't' },
  }
  expect(send({ message: message(), configuration }).configuration).toEqual({
    acceptedOutputModes: ['text/plain'],
    historyLength: 0,
    wait: true,
    longRunning: true,
    pushNotificationConfig: { url: 'https://r.example', token: 't', dialect: 'a2a-v0.3' },
  })
})

test.each<[string, object, string]>([
  ['no message', {}, 'message'],
  ['no parts', { message: message({ parts: [] }) }, 'message.parts'],
  [
    '10,000 parts',
    { message: message({ parts: Array.from({ length: 10_000 }, () => text) }) },
    'message.parts',
  ],
  ['a role of another dialect', { message: message({ role: 'assistant' }) }, 'message.role'],
  ['no message ID', { message: message({ messageId: undefined }) }, 'message.messageId'],
  ['an empty message ID', { message: message({ messageId: '' }) }, 'message.messageId'],
  [
    'a message ID of 257 characters',
    { message: message({ messageId: 'x'.repeat(257) }) },
    'message.messageId',
  ],
  ['a number as ID', { message: message({ contextId: 1 }) }, 'message.contextId'],
  ['another kind', { message: message({ kind: 'task' }) }, 'message.kind'],
  ['a part of 1.0', { message: message({ parts: [{ text: 'x' }] }) }, 'message.parts.0.kind'],
  [
    'data that is not an object',
    { message: message({ parts: [{ kind: 'data', data: 1 }] }) },
    'message.parts.0.data',
  ],
  [
    'a file of both forms',
    { message: message({ parts: [{ kind: 'file', file: { bytes: 'aGk=', uri: 'https://a.example' } }] }) },
    'message.parts.0.file.uri',
  ],
  [
    'a file of the disk',
    { message: message({ parts: [{ kind: 'file', file: { uri: 'file:///etc/passwd' } }] }) },
    'message.parts.0.file.uri',
  ],
  ['a text as blocking', { message: message(), configuration: { blocking: 'no' } }, 'configuration.blocking'],
  [
    'a negative history length',
    { message: message(), configuration: { historyLength: -1 } },
    'configuration.historyLength',
  ],
])('params with %s are invalid, and the issue names the field', (_, params, path) => {
  const error = failure(() => read('sendMessage', { ...params }))
  expect(error.error).toBe('InvalidParams')
  expect(error.data['issues']).toEqual(
    expect.arrayContaining([expect.objectContaining({ path: expect.stringMatching(`^${path}`) })]),
  )
})

test.each<[Operation, Record<string, unknown>]>([
  ['getTask', { id: 'unknown' }],
  ['cancelTask', { id: '../x' }],
  ['resubscribe', { id: 'task-1' }],
  ['sendMessage', { message: message({ taskId: 'task-1' }) }],
  ['sendMessage', { message: message({ referenceTaskIds: ['task-1'] }) }],
  ['setPushConfig', { taskId: 'task-1', pushNotificationConfig: { url: 'https://r.example' } }],
])('%s with a task ID that is not of this server is -32001', (operation, params) => {
  expect(failure(() => read(operation, params)).error).toBe('TaskNotFound')
})

test.each<[Operation, Record<string, unknown>, object]>([
  ['getTask', { id: taskId, historyLength: 2 }, { taskId, historyLength: 2 }],
  ['getTask', { task_id: taskId, history_length: 0 }, { taskId, historyLength: 0 }],
  ['cancelTask', { id: taskId, metadata: {} }, { taskId }],
  ['resubscribe', { id: taskId }, { taskId }],
  ['listPushConfigs', { id: taskId }, { taskId }],
  ['getPushConfig', { id: taskId }, { taskId }],
  [
    'getPushConfig',
    { id: taskId, pushNotificationConfigId: 'my hook' },
    { taskId, pushNotificationConfigId: ids('my hook').id },
  ],
  [
    'deletePushConfig',
    { id: taskId, pushNotificationConfigId: 'my hook' },
    { taskId, pushNotificationConfigId: ids('my hook').id, idempotent: true },
  ],
  ['getExtendedCard', {}, {}],
])('%s reads %j', (operation, given, params) => {
  expect(read(operation, given)).toEqual(params)
})

const timestamp = '2026-11-22T08:39:37.397708+00:00'
const task: Task = {
  id: taskId,
  contextId: 'c-uuid',
  contextName: 'my context',
  status: {
    state: 'completed',
    timestamp,
    message: {
      role: 'agent',
      parts: [{ kind: 'text', text: 'Done' }],
      messageId: 'm2',
      taskId,
      contextId: 'c-uuid',
    },
  },
  history: [
    {
      role: 'user',
      parts: [
        { kind: 'text', text: 'hi', mediaType: 'text/markdown', filename: 'a.md', metadata: { a: 1 } },
        { kind: 'file', file: { name: 'x', mimeType: 'text/plain', uri: 'https://a.example' } },
      ],
      messageId: 'm-uuid',
      messageName: 'msg-1',
      contextId: 'c-uuid',
      contextName: 'my context',
      taskId,
      extensions: ['urn:x'],
    },
    { role: 'assistant', parts: [], messageId: 'm3', contextId: 'c-uuid', contextName: 'my context', taskId },
  ],
  artifacts: [
    { artifactId: 'a1', name: '', description: 'The result', parts: [{ kind: 'data', data: { n: 1 } }] },
  ],
}
const json = (operation: Operation, result: never) =>
  JSON.parse(JSON.stringify(writeResult(operation, result).json))

test('a task is written in camelCase with the IDs that the client chose', () => {
  expect(json('getTask', task as never)).toEqual({
    kind: 'task',
    id: taskId,
    contextId: 'my context',
    status: {
      state: 'completed',
      timestamp,
      message: {
        kind: 'message',
        role: 'agent',
        parts: [{ kind: 'text', text: 'Done' }],
        messageId: 'm2',
        taskId,
        contextId: 'c-uuid',
      },
    },
    history: [
      {
        kind: 'message',
        role: 'user',
        parts: [
          { kind: 'text', text: 'hi', metadata: { a: 1 } },
          { kind: 'file', file: { name: 'x', mimeType: 'text/plain', uri: 'https://a.example' } },
        ],
        messageId: 'msg-1',
        contextId: 'my context',
        taskId,
        extensions: ['urn:x'],
      },
      { kind: 'message', role: 'agent', parts: [], messageId: 'm3', contextId: 'my context', taskId },
    ],
    artifacts: [{ artifactId: 'a1', description: 'The result', parts: [{ kind: 'data', data: { n: 1 } }] }],
  })
})

test('the metadata of a task names its parent and its children', () => {
  const parent = { agent: 'planner', taskId: 'p' }
  const linked = { ...task, parent, rootTaskId: 'r', children: [{ agent: 'calculator', taskId: 'c' }] }
  expect(json('getTask', linked as never)).toMatchObject({
    metadata: { parent, rootTaskId: 'r', children: [{ agent: 'calculator', taskId: 'c' }] },
  })
})

test('an agent that answers with a message returns it instead of the task, to message/send only', () => {
  const answered = { ...task, answersByMessage: true } as never
  expect(json('sendMessage', answered)).toMatchObject({ kind: 'message', messageId: 'm2' })
  expect(json('getTask', answered)).toMatchObject({ kind: 'task' })
  expect(json('sendMessage', task as never)).toMatchObject({ kind: 'task' })
})

test('a part that is loaded later is written when it is loaded', async () => {
  const lazy = new LazyPart(10, async () => ({ kind: 'text', text: 'late', mediaType: 'text/plain' }))
  const large = { ...task, artifacts: [{ artifactId: 'a', name: '', parts: [lazy as never] }] }
  const { parts, writePart } = toLazyJson(writeResult('getTask', large).json, partOut)
  expect(parts).toEqual([lazy])
  expect(writePart(await lazy.load())).toEqual({ kind: 'text', text: 'late' })
})

test('deletion of a webhook returns null, and a list of webhooks is an array', () => {
  expect(json('deletePushConfig', undefined as never)).toBeNull()
  expect(json('listPushConfigs', { items: [] } as never)).toEqual([])
})

test('a gateway reads the task ID from the same field as the method, if there are two', () => {
  const other = '01a20384-0000-75de-ac3f-6eb02a231f82'
  const webhook = { taskId, id: other, pushNotificationConfig: { url: 'https://example.com/' } }
  expect([readTaskId(webhook), read('setPushConfig', webhook)]).toMatchObject([taskId, { taskId }])
  const task = { taskId: other, task_id: other, id: taskId }
  expect([readTaskId(task), read('getTask', task)]).toMatchObject([taskId, { taskId }])
})
