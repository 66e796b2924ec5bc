import { expect, test } from 'vitest'
import { z } from 'zod'
import { bytes, enumOf, int32, optionalText, protoObject, time, timeOut } from './proto-json.ts'

const schema = protoObject({
  pageSize: int32(1, 100).optional(),
  pageToken: optionalText(8),
  flag: z.boolean().optional(),
})
const faults = (given: unknown, of: z.ZodType = schema) =>
  of.safeParse(given).error?.issues.map(({ path, message }) => `${path.join('.')} ${message}`.trim()) ?? []

test('a field is read in camelCase and in snake_case, and unknown fields are dropped', () => {
  expect(schema.parse({ pageSize: 3, later: 1 })).toEqual({ pageSize: 3 })
  expect(schema.parse({ page_size: 3, page_token: 't' })).toEqual({ pageSize: 3, pageToken: 't' })
})

test('both spellings of a field in one object are refused, even with equal values', () => {
  expect(faults({ pageSize: 3, page_size: 3 })).toEqual(['page_size must not be combined with pageSize'])
  expect(faults({ pageSize: 3, page_size: null })).toEqual([])
})

test('null and the empty string mean that a field is absent', () => {
  expect(schema.parse({ pageSize: null, pageToken: '', flag: null })).toEqual({})
})

test.each([
  [{ pageSize: '7' }, []],
  [{ pageSize: '7.0' }, []],
  [{ pageSize: 7 }, []],
  [{ pageSize: '' }, ['pageSize Invalid input: expected number, received string']],
  [{ pageSize: '7e1' }, ['pageSize Invalid input: expected number, received string']],
  [{ pageSize: 1.5 }, ['pageSize Invalid input: expected int, received number']],
  [{ pageSize: '0' }, ['pageSize Too small: expected number to be >=1']],
  [{ pageSize: true }, ['pageSize Invalid input: expected number, received boolean']],
  [{ pageSize: [7] }, ['pageSize Invalid input: expected number, received array']],
  [{ flag: 'true' }, ['flag Invalid input: expected boolean, received string']],
  [{ pageToken: 7 }, ['pageToken Invalid input: expected string, received number']],
  [{ pageToken: 'too long for it' }, ['pageToken Too big: expected string to have <=8 characters']],
  [[], ['Invalid input: expected object, received array']],
  ['{}', ['Invalid input: expected object, received string']],
])('reads numbers from digits and refuses other types: %j', (given, issues) => {
  expect(faults(given)).toEqual(issues)
})

test('an enum is read by name or number, and a value of a later version is refused', () => {
  const state = enumOf([
    ['STATE_UNSPECIFIED', undefined],
    ['STATE_ON', 'on'],
  ] as const)
  expect(state.parse('STATE_ON')).toBe('on')
  expect(state.parse(1)).toBe('on')
  expect(state.parse('STATE_UNSPECIFIED')).toBeUndefined()
  expect(state.parse(0)).toBeUndefined()
  for (const given of ['STATE_OFF', 2, -1, 0.5, 'on', true, null, {}])
    expect(faults(given, state)).toEqual(['must be one of STATE_ON'])
})

test.each([
  ['AAAA', 'AAAA'],
  ['', ''],
  ['-_8', '+/8='],
  ['QQ', 'QQ=='],
  ['QQ==', 'QQ=='],
  ['-w==', '+w=='],
])('bytes are read in each form of base64: %j', (given, expected) => {
  expect(bytes.parse(given)).toBe(expected)
})

test.each(['A', 'AAAAA', 'AA A', 'AA\n', 'Ä', '=', 'QQ=', 'QQ===', 'Q=Q='])(
  'bytes that are not base64 are refused: %j',
  (given) => {
    expect(faults(given, bytes)).toEqual(['must be base64'])
  },
)

test.each([
  ['2026-11-22T08:39:37Z', '2026-11-22T08:39:37.000000+00:00'],
  ['2026-11-22T09:39:37.5+01:00', '2026-11-22T08:39:37.500000+00:00'],
  ['2026-11-22T08:39:37.123456789Z', '2026-11-22T08:39:37.123456+00:00'],
  ['0001-01-01T00:00:00Z', '1970-01-01T00:00:00.000000+00:00'],
])('a time is read with its microseconds: %s', (given, expected) => {
  expect(time.parse(given)).toBe(expected)
})

test.each(['yesterday', '2026-11-22', '2026-11-22T08:39:37', '2026-13-22T08:39:37Z', '2026-11-22 08:39:37Z'])(
  'a time without the form of RFC 3339 is refused: %s',
  (given) => {
    expect(faults(given, time)).toEqual(['must be a time like "2026-01-31T12:00:00.000Z"'])
  },
)

test('a time is written in UTC with milliseconds', () => {
  expect(timeOut('2026-11-22T08:39:37.397708+00:00')).toBe('2026-11-22T08:39:37.397Z')
  expect(timeOut('2026-11-22T09:39:37+01:00')).toBe('2026-11-22T08:39:37.000Z')
})
