import { expect, test } from 'vitest'
import { ParleyError } from '../errors.ts'
import { a2aV03 } from './a2a-v03/dialect.ts'
import { writeErrorAnswer } from './error-answer.ts'
import { parley } from './parley/dialect.ts'

const missing = new ParleyError('TaskNotFound')
const json = (code: number) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    error: { code, message: 'Task not found', data: {} },
  })

test.each(['streamMessage', 'resubscribe'] as const)(
  'a failed call of %s is answered in A2A 0.3 by a stream with the error',
  (operation) => {
    expect(writeErrorAnswer(a2aV03, missing, { id: 1, operation })).toEqual({
      status: 200,
      type: 'text/event-stream; charset=utf-8',
      body: `data: ${json(-32001)}\n\n`,
    })
  },
)

test('other errors are JSON with the HTTP status of the dialect', () => {
  const type = 'application/json; charset=utf-8'
  expect(writeErrorAnswer(a2aV03, missing, { id: 1, operation: 'getTask' })).toEqual({
    status: 200,
    type,
    body: json(-32001),
  })
  expect(writeErrorAnswer(parley, missing, { id: 1, operation: 'resubscribe' })).toMatchObject({
    status: 404,
    type,
  })
  const refused = new ParleyError('InsufficientPermissions')
  expect(writeErrorAnswer(a2aV03, refused, { id: 1, operation: 'resubscribe' })).toMatchObject({
    status: 403,
    type,
  })
  expect(writeErrorAnswer(a2aV03, missing, { id: null })).toMatchObject({ type })
})
