import { expect, test } from 'vitest'
import { parseTraceParent, traceContextIn, traceIdOf } from './trace-context.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'
const traceparent = `00-${traceId}-${spanId}-01`

test('a traceparent has a trace, a span and the decision of the caller about its export', () => {
  expect(parseTraceParent(traceparent)).toEqual({ traceId, spanId, isSampled: true })
  expect(parseTraceParent(`00-${traceId}-${spanId}-00`)).toEqual({ traceId, spanId, isSampled: false })
  expect(traceIdOf({ traceparent })).toBe(traceId)
})

test.each([
  ['no text', 7],
  ['a list', [traceparent]],
  ['an empty text', ''],
  ['upper case', traceparent.toUpperCase()],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${spanId}-01`],
  ['a span of zeros', `00-${traceId}-${'0'.repeat(16)}-01`],
  ['version ff', `ff-${traceId}-${spanId}-01`],
  ['too few digits', `00-${traceId.slice(1)}-${spanId}-01`],
  ['a further field in version 00', `${traceparent}-00`],
  ['white space', ` ${traceparent}`],
  ['a line break at its end', `${traceparent}\n`],
  ['two values in one header', `${traceparent}, ${traceparent}`],
  ['a megabyte', `01${traceparent.slice(2)}-${'a'.repeat(1_000_000)}`],
])('a traceparent with %s is ignored, also its tracestate', (_what, given) => {
  expect(traceContextIn({ traceparent: given, tracestate: 'a=1' })).toBeUndefined()
})

test('a later version of traceparent is read as version 00', () => {
  expect(traceContextIn({ traceparent: `cc-${traceId}-${spanId}-ff-later` })).toEqual({ traceparent })
})

test('a valid tracestate is kept, with its members in order', () => {
  const tracestate = 'rojo=00f067aa0ba902b7, tenant@congo=t61rcWkgMzE,'
  expect(traceContextIn({ traceparent, tracestate })).toEqual({
    traceparent,
    tracestate: 'rojo=00f067aa0ba902b7,tenant@congo=t61rcWkgMzE',
  })
})

test.each([
  ['no members', ','],
  ['a member without a value', 'a'],
  ['two members of one key', 'a=1,a=2'],
  ['more than 32 members', Array.from({ length: 33 }, (_, at) => `k${at}=1`).join(',')],
  ['more than 512 characters', `a=${'x'.repeat(600)}`],
  ['a line break', 'a=1\r\nauthorization: Bearer x'],
  ['control characters', 'a=\u0000'],
  ['a key in upper case', 'A=1'],
  ['no text', { a: 1 }],
])('a tracestate with %s is dropped, and the trace is continued', (_what, tracestate) => {
  expect(traceContextIn({ traceparent, tracestate })).toEqual({ traceparent })
})

test('baggage of a caller is neither read nor stored', () => {
  const fields = { traceparent, baggage: 'userId=alice,secret=x', b3: '1-2-1' }
  expect(traceContextIn(fields)).toEqual({ traceparent })
  expect(traceContextIn({ baggage: 'userId=alice' })).toBeUndefined()
})

test('names of prototypes are not fields', () => {
  expect(
    traceContextIn(JSON.parse('{"__proto__":{"traceparent":"x"}}') as Record<string, unknown>),
  ).toBeUndefined()
})
