import { expect, test } from 'vitest'
import { type ErrorName, errorTable, ParleyError } from '../../errors.ts'
import { a2aV1 } from './dialect.ts'
import { rest } from './rest.ts'
import { received } from './sample.cases.ts'

const infoType = 'type.googleapis.com/google.rpc.ErrorInfo'
const domain = 'a2a-protocol.org'
const restOf = (error: ParleyError) => rest.writeError(error)

test.each<[ErrorName, number, string, number, string]>([
  ['TaskNotFound', -32001, 'TASK_NOT_FOUND', 404, 'NOT_FOUND'],
  ['TaskNotCancelable', -32002, 'TASK_NOT_CANCELABLE', 400, 'FAILED_PRECONDITION'],
  ['PushNotificationNotSupported', -32003, 'PUSH_NOTIFICATION_NOT_SUPPORTED', 400, 'FAILED_PRECONDITION'],
  ['UnsupportedOperation', -32004, 'UNSUPPORTED_OPERATION', 400, 'FAILED_PRECONDITION'],
  ['TaskImmutable', -32004, 'UNSUPPORTED_OPERATION', 400, 'FAILED_PRECONDITION'],
  ['ContentTypeNotSupported', -32005, 'CONTENT_TYPE_NOT_SUPPORTED', 400, 'INVALID_ARGUMENT'],
  ['InvalidAgentResponse', -32006, 'INVALID_AGENT_RESPONSE', 500, 'INTERNAL'],
  ['ExtensionSupportRequired', -32008, 'EXTENSION_SUPPORT_REQUIRED', 400, 'FAILED_PRECONDITION'],
  ['VersionNotSupported', -32009, 'VERSION_NOT_SUPPORTED', 400, 'FAILED_PRECONDITION'],
])('%s has the code, the reason and the status of the protocol', (name, code, reason, status, grpc) => {
  const error = new ParleyError(name, { data: { taskId: 't', attempts: 2, supported: ['1.0'] } })
  const details = [
    { '@type': infoType, reason, domain, metadata: { taskId: 't', attempts: '2' } },
    { '@type': 'type.googleapis.com/google.protobuf.Struct', value: { supported: ['1.0'] } },
  ]
  expect(a2aV1.writeError(error)).toEqual({ status: 200, code, message: error.message, data: details })
  const body = { error: { code: status, status: grpc, message: error.message, details } }
  expect(restOf(error)).toEqual({ status, body })
  const known = name === 'TaskImmutable' ? 'UnsupportedOperation' : name
  expect(a2aV1.readError({ error: a2aV1.writeError(error) })?.error).toBe(known)
  expect(a2aV1.readError(body)?.error).toBe(known)
})

test('invalid params name the fields', () => {
  const error = new ParleyError('InvalidParams', {
    data: { issues: [{ path: 'message.parts', message: 'is missing' }] },
  })
  const details = [
    {
      '@type': 'type.googleapis.com/google.rpc.BadRequest',
      fieldViolations: [{ field: 'message.parts', description: 'is missing' }],
    },
  ]
  expect(a2aV1.writeError(error)).toMatchObject({ status: 200, code: -32602, data: details })
  expect(restOf(error)).toMatchObject({
    status: 400,
    body: { error: { status: 'INVALID_ARGUMENT', details } },
  })
})

test.each<[ErrorName, number, number]>([
  ['ParseError', -32700, 200],
  ['InvalidRequest', -32600, 200],
  ['MethodNotFound', -32601, 200],
  ['InternalError', -32603, 200],
  ['SkillNotFound', -32030, 200],
  ['AuthenticationRequired', -32000, 401],
  ['InvalidToken', -32010, 401],
  ['InsufficientPermissions', -32013, 403],
  ['TooManyRequests', -32041, 429],
  ['Unavailable', -32042, 503],
])('%s has the code %d and the HTTP status %d', (name, code, status) => {
  expect(a2aV1.writeError(new ParleyError(name))).toMatchObject({ code, status })
})

test('a status that HTTP itself requires is kept', () => {
  expect(a2aV1.writeError(new ParleyError('InvalidRequest', { status: 413 })).status).toBe(413)
})

test('an agent without an extended card does not declare one, so the call is unsupported', () => {
  expect(a2aV1.writeError(new ParleyError('AuthenticatedExtendedCardNotConfigured')).code).toBe(-32004)
  expect(a2aV1.readError({ error: { code: -32007, message: '' } })?.error).toBe(
    'AuthenticatedExtendedCardNotConfigured',
  )
})

test('every error of Parley has a type in its details, and a client reads it back', () => {
  const shared = ['TaskImmutable', 'AuthenticatedExtendedCardNotConfigured']
  const names: string[] = []
  let name: ErrorName
  for (name in errorTable) {
    const written = a2aV1.writeError(new ParleyError(name))
    if (a2aV1.readError(received({ error: written }))?.error !== name) names.push(name)
    for (const detail of [written.data].flat()) expect(detail).toHaveProperty('@type')
  }
  expect(names).toEqual(expect.arrayContaining(shared))
  expect(names).toHaveLength(shared.length)
})

test('an error of another server is read by its code or status, and its message is cut', () => {
  expect(a2aV1.readError({ error: { code: -32050, message: 'x'.repeat(2000) } })).toMatchObject({
    error: 'InternalError',
    message: 'x'.repeat(1000),
  })
  expect(a2aV1.readError({ error: { code: -32601 } })?.error).toBe('MethodNotFound')
  expect(a2aV1.readError({ error: { code: 404, status: 'NOT_FOUND' } })?.error).toBe('NotFound')
  for (const answer of [{ result: {} }, { error: 'x' }, { error: { code: 'x' } }, null, [], 'error'])
    expect(a2aV1.readError(answer)).toBeUndefined()
})
