import { expect, test } from 'vitest'
import { CallCounts } from './call-counts.ts'

function counts() {
  const clock = { ms: 1_790_000_000_000 }
  return { clock, calls: new CallCounts(() => clock.ms) }
}

test('calls are counted by caller and agent, with errors and the median latency', () => {
  const { calls } = counts()
  for (const ms of [1, 4, 90]) calls.add('callers', 'sky', ms, false)
  calls.add('sky', 'sea', undefined, true)
  expect(calls.inWindow()).toEqual([
    { from: 'callers', to: 'sky', count: 3, errors: 0, p50Ms: 5 },
    { from: 'sky', to: 'sea', count: 1, errors: 1, p50Ms: undefined },
  ])
})

test('a call counts for five minutes', () => {
  const { calls, clock } = counts()
  calls.add('callers', 'sky', 1, false)
  clock.ms += 4 * 60_000
  calls.add('callers', 'sky', 1, false)
  expect(calls.inWindow()).toMatchObject([{ count: 2 }])
  clock.ms += 60_000
  expect(calls.inWindow()).toMatchObject([{ count: 1 }])
  clock.ms += 4 * 60_000
  expect(calls.inWindow()).toEqual([])
})

test('beyond 2,000 pairs, further callers are counted together, and idle pairs are removed', () => {
  const { calls, clock } = counts()
  for (let number = 0; number < 5000; number += 1) calls.add(`agent-${number}`, 'sky', 1, false)
  expect(calls.inWindow()[0]).toMatchObject({ from: 'others', to: 'sky', count: 3000 })
  clock.ms += 6 * 60_000
  calls.add('new', '__proto__', 1, false)
  expect(calls.inWindow()).toMatchObject([{ from: 'new', to: '__proto__', count: 1 }])
})
