import { ParleyError } from '@parley/wire/errors'
import { MongoNetworkError, MongoTopologyClosedError } from 'mongodb'
import { expect, test } from 'vitest'
import { outageOf } from './outage.ts'

const refused = () => Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' })
const away = (cause?: unknown) => new ParleyError('Unavailable', { message: 'No storage', cause })
const tried = [refused(), refused(), new Error('connect ENETUNREACH ::1')]

test.each<[string, unknown, string]>([
  ['a storage that does not answer', away(), 'No storage'],
  ['with its cause', away(refused()), 'No storage: connect ECONNREFUSED 127.0.0.1:1'],
  [
    'with the innermost cause',
    away(new Error('x', { cause: refused() })),
    'No storage: connect ECONNREFUSED 127.0.0.1:1',
  ],
  ['a connection refused', refused(), 'connect ECONNREFUSED 127.0.0.1:1'],
  ['of the driver of MongoDB', new MongoNetworkError('gone'), 'gone'],
  ['of its end', new MongoTopologyClosedError(), 'Topology is closed'],
  ['of ioredis', new Error('Connection is closed.'), 'Connection is closed.'],
  ['of ioredis, late', new Error('Command timed out'), 'Command timed out'],
  [
    'of several addresses',
    Object.assign(new AggregateError(tried, ''), { code: 'ECONNREFUSED' }),
    'connect ECONNREFUSED 127.0.0.1:1, connect ECONNREFUSED 127.0.0.1:1, connect ENETUNREACH ::1',
  ],
  ['two in one stop', new SuppressedError(away(), refused()), 'connect ECONNREFUSED 127.0.0.1:1: No storage'],
  ['several lines', away(new Error('one\n  two')), 'No storage: one two'],
  ['a long story', away(new Error('a'.repeat(1000))), `No storage: ${'a'.repeat(288)}`],
])('an outage is told in one line: %s', (_what, error, line) => {
  expect(outageOf(error)).toBe(line)
})

test.each<[string, unknown]>([
  ['an error of ours', new TypeError('undefined is not a function')],
  ['an internal error', new ParleyError('InternalError', { cause: refused() })],
  ['a refusal', new ParleyError('InvalidParams')],
  ['an outage and an error of ours', new SuppressedError(away(), new TypeError('x'))],
  ['a text', 'ECONNREFUSED'],
  ['nothing', undefined],
])('no outage: %s', (_what, error) => {
  expect(outageOf(error)).toBeUndefined()
})
