import { expect, test } from 'vitest'
import { backoffMs, retryAfterMs } from './retry-policy.ts'

test.each([
  [1, 0, 500],
  [1, 1, 1000],
  [2, 0, 1000],
  [2, 0.5, 1500],
  [2, 1, 2000],
  [4, 1, 5000],
  [5, 0, 5000],
  [50, 1, 5000],
])(
  'the delay after attempt %i with random number %d is %i ms, which grows from 0.5 s to 5 s',
  (attempt, random, ms) => {
    expect(backoffMs(attempt, random)).toBe(ms)
  },
)

test.each([
  [0, 500],
  [300, 500],
  [3000, 3000],
  [5000, 5000],
  [3_600_000, 5000],
])('honours a Retry-After of %i ms up to 5 s, and never shortens the delay', (retryAfter, ms) => {
  expect(backoffMs(1, 0, retryAfter)).toBe(ms)
})

const now = Date.parse('2026-11-21T04:00:00Z')
test.each([
  [undefined, 0],
  ['', 0],
  ['2', 2000],
  [' 3 ', 3000],
  [['4', '5'], 4000],
  ['Sat, 21 Nov 2026 04:00:04 GMT', 4000],
  ['Saturday, 21-Nov-26 04:00:04 GMT', 4000],
  ['Sat, 21 Nov 2026 03:59:00 GMT', 0],
  ['-1', 0],
  ['1.5', 0],
  ['2027', 2_027_000],
  ['2027-01-01', 0],
  ['soon', 0],
  ['9'.repeat(400), Number.POSITIVE_INFINITY],
])('parses the Retry-After header %j as %d ms', (header, ms) => {
  expect(retryAfterMs(header, now)).toBe(ms)
})
