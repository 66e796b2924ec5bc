import { expect, test } from 'vitest'
import { ParleyError } from '../../errors.ts'
import { idsOf } from '../../model/ids.ts'
import type { ClientParams } from '../codec.ts'
import { readParams } from './methods.ts'
import { writeParams } from './requests.ts'

const json = <O extends keyof ClientParams>(operation: O, params: ClientParams[O]) =>
  JSON.parse(JSON.stringify(writeParams(operation, params)))
const parts = [
  { kind: 'text' as const, text: 'hi', mediaType: 'text/markdown' },
  { kind: 'file' as const, file: { name: 'x', bytes: 'aGk=' } },
]

test("a message is written with the caller's own IDs and the other server's task", () => {
  const message = {
    role: 'user' as const,
    parts,
    messageId: 'uuid',
    messageName: 'msg-1',
    contextId: 'other context',
    taskId: 'other-task',
    extensions: ['urn:x'],
    metadata: { a: 1 },
  }
  const configuration = {
    wait: false,
    historyLength: 0,
    pushNotificationConfig: {
      id: 'hook',
      url: 'https://r.example',
      token: 't',
      credentials: { scheme: 'Bearer', credentials: 'c' },
      dialect: 'parley',
    },
  }
  expect(json('sendMessage', { message, configuration })).toEqual({
    message: {
      kind: 'message',
      role: 'user',
      parts: [
        { kind: 'text', text: 'hi' },
        { kind: 'file', file: { name: 'x', bytes: 'aGk=' } },
      ],
      messageId: 'msg-1',
      contextId: 'other context',
      taskId: 'other-task',
      extensions: ['urn:x'],
      metadata: { a: 1 },
    },
    configuration: {
      acceptedOutputModes: [],
      blocking: false,
      historyLength: 0,
      pushNotificationConfig: {
        id: 'hook',
        url: 'https://r.example',
        token: 't',
        authentication: { schemes: ['Bearer'], credentials: 'c' },
      },
    },
  })
})

test('servers of version 0.2 require acceptedOutputModes, so that the configuration always has it', () => {
  const message = { role: 'user' as const, parts, messageId: 'm' }
  expect(json('streamMessage', { message }).configuration).toEqual({ acceptedOutputModes: [] })
})

test('params that this dialect writes are params that it reads', () => {
  const ids = idsOf('alice')
  const taskId = '01a20384-dd0f-75de-ac3f-6eb02a231f82'
  expect(readParams('getTask', json('getTask', { taskId, historyLength: 1 }), ids)).toEqual({
    taskId,
    historyLength: 1,
  })
  for (const operation of ['cancelTask', 'resubscribe', 'listPushConfigs'] as const)
    expect(readParams(operation, json(operation, { taskId }), ids)).toEqual({ taskId })
  const config = { id: taskId, url: 'https://r.example', token: 't' }
  expect(
    readParams('setPushConfig', json('setPushConfig', { taskId, pushNotificationConfig: config }), ids),
  ).toEqual({ taskId, longRunning: true, pushNotificationConfig: { ...config, dialect: 'a2a-v0.3' } })
  expect(
    readParams(
      'deletePushConfig',
      json('deletePushConfig', { taskId, pushNotificationConfigId: taskId }),
      ids,
    ),
  ).toMatchObject({ taskId, pushNotificationConfigId: taskId })
})

test('there are no params for a list of tasks', () => {
  expect(() => writeParams('listTasks', { limit: 1 })).toThrow(ParleyError)
})
