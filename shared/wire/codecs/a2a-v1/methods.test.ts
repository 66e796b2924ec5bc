import { expect, test } from 'vitest'
import { ParleyError } from '../../errors.ts'
import type { PushConfigState } from '../../model/call.ts'
import { idsOf } from '../../model/ids.ts'
import { type Operation, operations } from '../../model/operation.ts'
import type { TaskState } from '../../model/task.ts'
import { a2aV1 } from './dialect.ts'
import { at, message, messageJson, received, task, taskId, taskJson } from './sample.cases.ts'

const ids = idsOf('client')
const read = (operation: Operation, params: Record<string, unknown>) =>
  a2aV1.readParams(operation, params, ids)
const json = <O extends Operation>(operation: O, result: Parameters<typeof a2aV1.writeResult<O>>[1]) =>
  received(a2aV1.writeResult(operation, result).json)

function issuesOf(operation: Operation, params: Record<string, unknown>): unknown {
  try {
    return read(operation, params)
  } catch (error) {
    return error instanceof ParleyError ? (error.data['issues'] ?? error.error) : error
  }
}

test('each method of the protocol has its operation, and Parley has four operations more', () => {
  expect([...a2aV1.methods.keys()].sort()).toEqual([
    'CancelTask',
    'CreateTaskPushNotificationConfig',
    'DeleteTaskPushNotificationConfig',
    'GetExtendedAgentCard',
    'GetTask',
    'GetTaskPushNotificationConfig',
    'ListTaskPushNotificationConfigs',
    'ListTasks',
    'SendMessage',
    'SendStreamingMessage',
    'SubscribeToTask',
  ])
  const known = new Set([...a2aV1.methods.values()].map(({ operation }) => operation))
  let operation: Operation
  const missing: Operation[] = []
  for (operation in operations) if (!known.has(operation)) missing.push(operation)
  expect(missing).toEqual(['giveFeedback', 'listTaskEvents', 'listContexts', 'clearContext'])
  for (const one of missing)
    expect(() => a2aV1.methodOf(one)).toThrow(expect.objectContaining({ error: 'UnsupportedOperation' }))
})

const sent = { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] } }

test('the answer to a message waits unless returnImmediately is true, and its task must exist', () => {
  expect(read('sendMessage', sent)).toMatchObject({
    continues: true,
    pausesUnpaid: true,
    configuration: { wait: true },
  })
  const config = (fields: object) => read('sendMessage', { ...sent, configuration: fields })
  expect(config({ returnImmediately: false })).toMatchObject({ configuration: { wait: true } })
  expect(config({ return_immediately: true })).toMatchObject({ configuration: { wait: false } })
  expect(config({ historyLength: '2', acceptedOutputModes: ['a/b'] })).toMatchObject({
    configuration: { historyLength: 2, acceptedOutputModes: ['a/b'] },
  })
})

test('an empty list of output modes accepts every output', () => {
  const read = a2aV1.readParams('sendMessage', { ...sent, configuration: { acceptedOutputModes: [] } }, ids)
  expect(read.configuration?.acceptedOutputModes).toBeUndefined()
})

test('a webhook is read with its credentials and keeps the dialect', () => {
  const config = {
    id: 'my/hook',
    url: 'https://e',
    token: 't',
    authentication: { scheme: 'Bearer', credentials: 'c' },
  }
  const pushNotificationConfig = {
    ...ids('my/hook'),
    url: 'https://e',
    token: 't',
    credentials: { scheme: 'Bearer', credentials: 'c' },
    dialect: 'a2a-v1',
  }
  expect(read('setPushConfig', { taskId, ...config })).toEqual({
    taskId,
    longRunning: true,
    pushNotificationConfig,
  })
  expect(
    read('sendMessage', { ...sent, configuration: { taskPushNotificationConfig: config } }),
  ).toMatchObject({
    configuration: { longRunning: true, pushNotificationConfig },
  })
  expect(read('setPushConfig', { taskId, url: 'https://e' })).toMatchObject({
    pushNotificationConfig: { url: 'https://e', dialect: 'a2a-v1' },
  })
})

test('credentials that could break a header are refused, and the issue does not repeat them', () => {
  const issues = (authentication: object) =>
    issuesOf('setPushConfig', { taskId, url: 'https://e', authentication })
  expect(issues({ scheme: 'Bea rer', credentials: 'c' })).toEqual([
    { path: 'authentication.scheme', message: 'must be the name of an HTTP authentication scheme' },
  ])
  const hidden = issues({ scheme: 'Bearer', credentials: 'secret\r\nx-admin: 1' })
  expect(hidden).toEqual([{ path: 'authentication.credentials', message: 'must be printable ASCII' }])
})

test('a list is sorted by status, counted and without artifacts by default', () => {
  const defaults = { limit: 50, includeArtifacts: false, order: 'status', count: true }
  expect(read('listTasks', {})).toEqual(defaults)
  expect(read('listTasks', { status: 0, pageToken: '', contextId: '' })).toEqual(defaults)
  const all = {
    context_id: 'c',
    status: 'TASK_STATE_INPUT_REQUIRED',
    pageSize: 7,
    page_token: 'next',
    historyLength: 0,
    statusTimestampAfter: '2026-11-22T08:39:37.397Z',
    includeArtifacts: true,
  }
  expect(read('listTasks', all)).toEqual({
    ...defaults,
    limit: 7,
    cursor: 'next',
    contextId: ids('c').id,
    states: ['input-required', 'payment-required', 'negotiation-bid-submitted'],
    historyLength: 0,
    statusSince: '2026-11-22T08:39:37.397000+00:00',
    includeArtifacts: true,
  })
})

test('the other methods read the IDs of the task and of the webhook', () => {
  const config = { taskId, id: 'hook' }
  const ofConfig = { taskId, pushNotificationConfigId: ids('hook').id }
  expect(read('getTask', { id: taskId, history_length: 1 })).toEqual({ taskId, historyLength: 1 })
  expect(read('cancelTask', { id: taskId, metadata: {} })).toEqual({ taskId })
  expect(read('resubscribe', { id: taskId })).toEqual({ taskId, requireOpen: true })
  expect(read('getPushConfig', config)).toEqual(ofConfig)
  expect(read('deletePushConfig', config)).toEqual({ ...ofConfig, idempotent: true })
  expect(read('listPushConfigs', { task_id: taskId, pageSize: 0 })).toEqual({ taskId })
  expect(read('listPushConfigs', { taskId, pageSize: 2, pageToken: 'p' })).toEqual({
    taskId,
    limit: 2,
    cursor: 'p',
  })
  expect(read('getExtendedCard', { tenant: 't' })).toEqual({})
})

test.each<[Operation, Record<string, unknown>, unknown]>([
  ['getTask', {}, [{ path: 'id', message: 'Invalid input: expected string, received undefined' }]],
  ['getTask', { id: 7 }, [{ path: 'id', message: 'Invalid input: expected string, received number' }]],
  ['getTask', { id: 'missing' }, 'TaskNotFound'],
  [
    'getTask',
    { id: taskId, historyLength: -1 },
    [{ path: 'historyLength', message: 'Too small: expected number to be >=0' }],
  ],
  ['listTasks', { pageSize: 0 }, [{ path: 'pageSize', message: 'Too small: expected number to be >=1' }]],
  ['listTasks', { pageSize: 101 }, [{ path: 'pageSize', message: 'Too big: expected number to be <=100' }]],
  [
    'setPushConfig',
    { taskId },
    [{ path: 'url', message: 'Invalid input: expected string, received undefined' }],
  ],
])('%s refuses %j', (operation, params, issues) => {
  expect(issuesOf(operation, params)).toEqual(issues)
})

test('the task ID of a call is read without the other params', () => {
  expect(a2aV1.readTaskId({ id: taskId.toUpperCase() })).toBe(taskId)
  expect(a2aV1.readTaskId({ task_id: taskId, id: 'hook' })).toBe(taskId)
  expect(() => a2aV1.readTaskId({ id: 'x' })).toThrow(expect.objectContaining({ error: 'TaskNotFound' }))
  expect(() => a2aV1.readTaskId({})).toThrow(expect.objectContaining({ error: 'InvalidParams' }))
})

test('the tenant names the agent at a shared address', () => {
  expect(a2aV1.readTenant({ tenant: 'calculator' })).toBe('calculator')
  for (const tenant of ['', null, undefined]) expect(a2aV1.readTenant({ tenant })).toBeUndefined()
  for (const tenant of [7, {}, 'x'.repeat(257)])
    expect(() => a2aV1.readTenant({ tenant })).toThrow('Invalid params')
})

test('the negotiation fields are in the metadata of the request or of the message', () => {
  const negotiation = { min_score: 0.5 }
  expect(a2aV1.readQuery({ metadata: { negotiation } })).toBe(negotiation)
  expect(a2aV1.readQuery({ message: { metadata: { negotiation } } })).toBe(negotiation)
  expect(a2aV1.readQuery({ message: {} })).toBeUndefined()
})

test('a page token is read and replaced in either spelling', () => {
  expect(a2aV1.readCursor({ page_token: 'p' })).toBe('p')
  expect(a2aV1.readCursor({ pageToken: '' })).toBeUndefined()
  expect(a2aV1.writeCursor({ page_token: 'p', pageSize: 1 }, 'q')).toEqual({ pageToken: 'q', pageSize: 1 })
  expect(a2aV1.writeCursor({ pageToken: 'p' }, undefined)).toEqual({})
})

test('the answer to a message is the task, or the message of an agent that answers with a message', () => {
  expect(json('sendMessage', task)).toEqual({ task: taskJson })
  expect(json('sendMessage', { ...task, answersByMessage: true })).toEqual({
    message: { ...messageJson, role: 'ROLE_AGENT' },
  })
  const running = { ...task, status: { state: 'working', timestamp: at } } as const
  expect(json('sendMessage', { ...running, answersByMessage: true })).toHaveProperty('task')
})

test('a list has its four fields on every page, and tasks without artifacts have no such field', () => {
  const { artifacts: _artifacts, ...bare } = taskJson
  const item = { ...task, artifacts: [], createdAt: at }
  expect(json('listTasks', { items: [item], limit: 50, total: 1 })).toEqual({
    tasks: [bare],
    nextPageToken: '',
    pageSize: 50,
    totalSize: 1,
  })
  expect(json('listTasks', { items: [], nextCursor: 'n' })).toEqual({
    tasks: [],
    nextPageToken: 'n',
    pageSize: 0,
    totalSize: 0,
  })
})

test('a webhook is written as it was registered', () => {
  const config: PushConfigState = {
    id: ids('hook').id,
    name: 'hook',
    url: 'https://e',
    token: 't',
    credentials: { scheme: 'Bearer', credentials: 'c' },
    authentication: { type: 'http', scheme: 'bearer' },
    dialect: 'a2a-v1',
    task: { id: taskId },
    longRunning: true,
    health: { attempts: 0, delivered: 0, dropped: {} },
  }
  const written = {
    taskId,
    id: 'hook',
    url: 'https://e',
    token: 't',
    authentication: { scheme: 'Bearer', credentials: 'c' },
  }
  expect(json('setPushConfig', config)).toEqual(written)
  expect(json('listPushConfigs', { items: [config], nextCursor: 'n' })).toEqual({
    configs: [written],
    nextPageToken: 'n',
  })
  expect(json('listPushConfigs', { items: [] })).toEqual({})
  expect(json('deletePushConfig', undefined)).toEqual({})
})

test('a client writes requests that a server reads', () => {
  const params = a2aV1.readParams(
    'sendMessage',
    { message: messageJson, configuration: { historyLength: 1 } },
    ids,
  )
  const written = a2aV1.writeParams('sendMessage', params)
  expect(received(written)).toEqual({
    message: messageJson,
    configuration: { historyLength: 1, returnImmediately: false },
  })
  const unnamed = { ...message, messageName: undefined, contextId: 'theirs', contextName: undefined }
  expect(received(a2aV1.writeParams('streamMessage', { message: unnamed }))).toMatchObject({
    message: { messageId: message.messageId, contextId: 'theirs' },
  })
  const page = { limit: 5, cursor: 'c', statusSince: at, includeArtifacts: true } as const
  const list = { ...page, states: ['working'] } as const
  expect(received(a2aV1.writeParams('listTasks', list))).toEqual({
    status: 'TASK_STATE_WORKING',
    pageSize: 5,
    pageToken: 'c',
    statusTimestampAfter: '2026-11-22T08:39:37.397Z',
    includeArtifacts: true,
  })
  const config = { url: 'https://e', credentials: { scheme: 'Bearer', credentials: 'c' } }
  expect(received(a2aV1.writeParams('setPushConfig', { taskId, pushNotificationConfig: config }))).toEqual({
    taskId,
    url: 'https://e',
    authentication: config.credentials,
  })
  for (const operation of ['getTask', 'cancelTask', 'resubscribe'] as const)
    expect(received(a2aV1.writeParams(operation, { taskId }))).toEqual({ id: taskId })
  const ofConfig = { taskId, pushNotificationConfigId: 'hook' }
  expect(a2aV1.writeParams('getPushConfig', ofConfig)).toEqual({ taskId, id: 'hook' })
  expect(a2aV1.writeParams('deletePushConfig', ofConfig)).toEqual({ taskId, id: 'hook' })
  expect(received(a2aV1.writeParams('listPushConfigs', { taskId }))).toEqual({ taskId })
  expect(() => a2aV1.writeParams('listTaskEvents', { taskId })).toThrow('A2A has no method')
})

test('a client asks for the states that the protocol shows as one, and for no others together', () => {
  const status = (states: TaskState[]) => received(a2aV1.writeParams('listTasks', { states }))
  expect(status(['input-required', 'payment-required'])).toEqual({ status: 'TASK_STATE_INPUT_REQUIRED' })
  expect(status(['payment-required'])).toEqual({ status: 'TASK_STATE_INPUT_REQUIRED' })
  for (const states of [['working', 'failed'], []] as TaskState[][])
    expect(() => status(states)).toThrow('one state or of all states')
})
