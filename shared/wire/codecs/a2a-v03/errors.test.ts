import { expect, test } from 'vitest'
import { type ErrorName, ParleyError } from '../../errors.ts'
import { readError, writeError } from './errors.ts'

test.each<[ErrorName, number, number]>([
  ['ParseError', 200, -32700],
  ['InvalidRequest', 200, -32600],
  ['MethodNotFound', 200, -32601],
  ['InvalidParams', 200, -32602],
  ['InternalError', 200, -32603],
  ['TaskNotFound', 200, -32001],
  ['TaskNotCancelable', 200, -32002],
  ['PushNotificationNotSupported', 200, -32003],
  ['UnsupportedOperation', 200, -32004],
  ['TaskImmutable', 200, -32004],
  ['ContentTypeNotSupported', 200, -32005],
  ['InvalidAgentResponse', 200, -32006],
  ['AuthenticatedExtendedCardNotConfigured', 200, -32007],
  ['ExtensionSupportRequired', 200, -32008],
  ['VersionNotSupported', 200, -32009],
  ['SkillNotFound', 200, -32030],
  ['AuthenticationRequired', 401, -32000],
  ['TokenExpired', 401, -32011],
  ['InsufficientPermissions', 403, -32013],
  ['TooManyRequests', 429, -32041],
  ['Unavailable', 503, -32042],
])('%s has the HTTP status %i and the code %i', (name, status, code) => {
  const error = new ParleyError(name, { data: { taskId: 't' } })
  expect(writeError(error)).toEqual({ status, code, message: error.message, data: { taskId: 't' } })
})

test('a body that is too large keeps its HTTP status', () => {
  expect(writeError(new ParleyError('InvalidRequest', { status: 413 }))).toMatchObject({ status: 413 })
})

test('an agent without webhooks refuses push methods with -32003', () => {
  const error = new ParleyError('ContentTypeNotSupported', {
    data: { name: 'PushNotificationNotSupportedError' },
  })
  expect(writeError(error)).toMatchObject({ status: 200, code: -32003 })
})

test.each<[number, ErrorName]>([
  [-32001, 'TaskNotFound'],
  [-32002, 'TaskNotCancelable'],
  [-32004, 'UnsupportedOperation'],
  [-32007, 'AuthenticatedExtendedCardNotConfigured'],
  [-32009, 'VersionNotSupported'],
  [-32603, 'InternalError'],
  [-32011, 'InternalError'],
  [-32050, 'InternalError'],
])("another server's code %i is read as %s", (code, name) => {
  const read = readError({
    jsonrpc: '2.0',
    id: 1,
    error: { code, message: 'x'.repeat(5000), data: { a: 1 } },
  })
  expect(read?.error).toBe(name)
  expect(read?.message).toBe('x'.repeat(1000))
  expect(read?.data).toEqual({})
})

test.each([[undefined], [null], ['error'], [{ result: {} }], [{ error: 'x' }], [{ error: { code: '1' } }]])(
  '%j is not an error',
  (answer) => {
    expect(readError(answer)).toBeUndefined()
  },
)
