import { expect, test } from 'vitest'
import { timestamp, timestampOfServer } from './timestamp.ts'

test.each([
  ['2026-11-22T17:01:00.055Z', '2026-11-22T17:01:00.055000+00:00'],
  ['2026-11-22T17:01:00+02:00', '2026-11-22T15:01:00.000000+00:00'],
  ['2026-11-22T17:01:00.055681', '2026-11-22T17:01:00.055681+00:00'],
  ['2026-11-22T17:01:00.055681999Z', '2026-11-22T17:01:00.055681+00:00'],
])('%s is read as %s', (text, expected) => {
  expect(timestampOfServer(text)).toBe(expected)
})

test.each([
  undefined,
  7,
  '',
  'now',
  '2026-13-01T00:00:00Z',
  '+275760-09-13T00:00:00Z',
  '1969-01-01T00:00:00Z',
])('what is not a time is replaced with the current time: %s', (given) => {
  // Other tests of this process may have set the clock, which never goes back.
  const before = timestamp()
  const read = timestampOfServer(given)
  expect([before, read, timestamp()].sort()[1]).toBe(read)
})
