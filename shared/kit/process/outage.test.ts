import { ParleyError } from '@parley/wire/errors'
import { MongoNetworkError, MongoTopologyClosedError } from 'mongodb'
import { expect, test } from 'vitest'
import { outageOf } from './outage.ts'

const refused = () => Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' })
const outage = (cause?: unknown) => new ParleyError('Unavailable', { message: 'No storage', cause })
const tried = [refused(), refused(), new Error('connect ENETUNREACH ::1')]

test.each<[string, unknown, string]>([
  ['an unavailable storage', outage(), 'No storage'],
  ['with its cause', outage(refused()), 'No storage: connect ECONNREFUSED 127.0.0.1:1'],
  [
    'with the innermost cause',
    outage(new Error('x', { cause: refused() })),
    'No storage: connect ECONNREFUSED 127.0.0.1:1',
  ],
  ['a refused connection', refused(), 'connect ECONNREFUSED 127.0.0.1:1'],
  ['a network error of the MongoDB driver', new MongoNetworkError('gone'), 'gone'],
  ['a closed topology of the MongoDB driver', new MongoTopologyClosedError(), 'Topology is closed'],
  ['a closed connection of ioredis', new Error('Connection is closed.'), 'Connection is closed.'],
  ['a timeout of ioredis', new Error('Command timed out'), 'Command timed out'],
  [
    'several addresses',
    Object.assign(new AggregateError(tried, ''), { code: 'ECONNREFUSED' }),
    'connect ECONNREFUSED 127.0.0.1:1, connect ECONNREFUSED 127.0.0.1:1, connect ENETUNREACH ::1',
  ],
  [
    'two during one shutdown',
    new SuppressedError(outage(), refused()),
    'connect ECONNREFUSED 127.0.0.1:1: No storage',
  ],
  ['several lines', outage(new Error('one\n  two')), 'No storage: one two'],
  ['a long message', outage(new Error('a'.repeat(1000))), `No storage: ${'a'.repeat(288)}`],
])('an outage is reported in one line (%s)', (_what, error, line) => {
  expect(outageOf(error)).toBe(line)
})

test.each<[string, unknown]>([
  ['a programming error', new TypeError('undefined is not a function')],
  ['an internal error', new ParleyError('InternalError', { cause: refused() })],
  ['an invalid request', new ParleyError('InvalidParams')],
  ['an outage and a programming error', new SuppressedError(outage(), new TypeError('x'))],
  ['a text', 'ECONNREFUSED'],
  ['nothing', undefined],
])('does not report %s as an outage', (_what, error) => {
  expect(outageOf(error)).toBeUndefined()
})
