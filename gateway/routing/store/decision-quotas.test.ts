import { createSecretKey } from 'node:crypto'
import { expect, test } from 'vitest'
import { anonymousHolder, surplusOf } from './decision-quotas.ts'

const counts = (...all: number[]) => all.map((count, at) => ({ holder: `h${at}`, count }))

test.each<[string, number[], number, number[]]>([
  ['the largest alone', [100, 10, 5], 50, [50]],
  ['the two largest, down to the same level', [100, 80, 5], 60, [40, 20]],
  ['every holder, when all have the same number', [3, 3, 3], 3, [1, 1, 1]],
  ['every holder, when the excess is larger', [2, 1], 10, [2, 1]],
])('records are removed from %s', (_what, has, excess, goes) => {
  expect(surplusOf(counts(...has), excess)).toEqual(counts(...goes))
})

test('nothing is removed if there are no records', () => {
  expect(surplusOf([], 5)).toEqual([])
})

test('an address is stored as a keyed hash', () => {
  const key = createSecretKey(new Uint8Array(32))
  const other = createSecretKey(new Uint8Array(32).fill(1))
  expect(anonymousHolder('192.0.2.1', key)).toBe(anonymousHolder('192.0.2.1', key))
  expect(anonymousHolder('192.0.2.1', key)).not.toBe(anonymousHolder('192.0.2.2', key))
  expect(anonymousHolder('192.0.2.1', key)).not.toBe(anonymousHolder('192.0.2.1', other))
})
