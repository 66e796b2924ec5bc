import { expect, test } from 'vitest'
import { findRestCall } from './rest-call.ts'

test.each([
  ['POST', '/message:send', 'sendMessage', {}],
  ['POST', '/m%65ssage:send', 'sendMessage', {}],
  ['POST', '/a2a/v1/sky/message:stream', 'streamMessage', { tenant: 'sky' }],
  ['GET', '/tasks', 'listTasks', {}],
  ['GET', '/tasks/a%20b', 'getTask', { id: 'a b' }],
  ['GET', '/tasks/a%2541', 'getTask', { id: 'a%41' }],
  ['GET', `/tasks/${'x'.repeat(300)}`, 'getTask', { id: 'x'.repeat(300) }],
  ['GET', '/tasks/x:subscribe', 'resubscribe', { id: 'x' }],
  ['POST', '/a2a/v1/tasks/x:cancel', 'cancelTask', { id: 'x' }],
  ['GET', '/tasks/x/pushNotificationConfigs/a/b', 'getPushConfig', { taskId: 'x', '*': 'a/b' }],
  ['GET', '/extendedAgentCard', 'getExtendedCard', {}],
])('%s %s is %s', (verb, path, operation, fields) => {
  const found = findRestCall(verb, path, 'historyLength=1')
  expect([found?.route.operation, found?.path, found?.query]).toEqual([
    operation,
    fields,
    { historyLength: '1' },
  ])
})

test.each([
  ['GET', '/message:send'],
  ['POST', '/message%3Asend'],
  ['POST', '/message:send/'],
  ['GET', '/tasks/'],
  ['GET', '/tasks/%ff'],
  ['POST', '/tasks/get'],
  ['GET', '/health'],
])('%s %s is not a call', (verb, path) => {
  expect(findRestCall(verb, path, undefined)).toBeUndefined()
})
