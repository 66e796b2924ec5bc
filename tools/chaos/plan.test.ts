import { expect, test } from 'vitest'
import { faultKinds, faultsOf, pick, randomFrom } from './plan.ts'

const decks = 3

function first(seed: number) {
  const faults = faultsOf(seed)
  return Array.from({ length: decks * faultKinds.length }, () => faults.next().value)
}

test('the same seed gives the same faults, and each kind occurs once before any repeats', () => {
  expect(first(7)).toEqual(first(7))
  expect(first(7)).not.toEqual(first(8))
  for (let deck = 0; deck < decks; deck += 1) {
    const from = deck * faultKinds.length
    const kinds = first(7).slice(from, from + faultKinds.length)
    expect(new Set(kinds.map(({ kind }) => kind))).toEqual(new Set(faultKinds))
  }
})

test('random numbers are between 0 and 1 and select every element', () => {
  const random = randomFrom(1)
  const drawn = Array.from({ length: 1000 }, random)
  expect(Math.min(...drawn)).toBeGreaterThanOrEqual(0)
  expect(Math.max(...drawn)).toBeLessThan(1)
  expect(new Set(drawn).size).toBe(1000)
  expect(new Set(drawn.map((chance) => pick(['a', 'b', 'c'], chance)))).toEqual(new Set(['a', 'b', 'c']))
})
