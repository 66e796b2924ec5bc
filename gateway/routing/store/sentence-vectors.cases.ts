import { expect, test } from 'vitest'
import type { RoutingStore } from './routing-store.ts'

const bytesOf = (vectors: ReadonlyMap<string, Uint8Array>) =>
  Object.fromEntries([...vectors].map(([key, bytes]) => [key, [...bytes]]))

const vectors = (entries: Record<string, number[]>) =>
  new Map(Object.entries(entries).map(([key, bytes]) => [key, Uint8Array.from(bytes)]))

/** Conformance cases for the sentence vectors of a routing store. `store` returns the store of the test, which is empty. */
export function sentenceVectorCases(store: () => RoutingStore): void {
  const before = (sentenceVectors: number) => ({
    routes: 0,
    claims: 0,
    keys: 0,
    decisions: 0,
    trainingExamples: 0,
    sentenceVectors,
  })

  test('a sentence vector is stored in its last version, and only those that are asked for are returned', async () => {
    await store().saveSentenceVectors(vectors({ a: [1, 255, 0], b: [2] }), 1000)
    await store().saveSentenceVectors(vectors({ b: [3, 4] }), 1000)
    expect(bytesOf(await store().sentenceVectors(['a', 'b', 'c', 'a']))).toEqual({
      a: [1, 255, 0],
      b: [3, 4],
    })
    expect(bytesOf(await store().sentenceVectors(['b']))).toEqual({ b: [3, 4] })
    expect(bytesOf(await store().sentenceVectors([]))).toEqual({})
    await store().saveSentenceVectors(new Map(), 1000)
  })

  test('concurrent writes of the same sentence vectors succeed', async () => {
    const same = vectors(Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`k${at}`, [at]])))
    await Promise.all([1, 2, 3, 4].map((at) => store().saveSentenceVectors(same, at)))
    expect((await store().sentenceVectors([...same.keys()])).size).toBe(50)
  })

  test('removeOld removes sentence vectors that were not used since, up to the limit', async () => {
    await store().saveSentenceVectors(vectors({ a: [1], b: [2], c: [3], d: [4] }), 1000)
    await store().saveSentenceVectors(vectors({ e: [5] }), 2000)
    await store().markSentenceVectors(['a', 'absent'], { at: 3000, before: 1001 })
    await store().markSentenceVectors([], { at: 3000, before: 1001 })
    expect(await store().removeOld(before(2000), 2)).toBe(2)
    expect(await store().removeOld(before(2000), 2)).toBe(1)
    const left = await store().sentenceVectors(['a', 'b', 'c', 'd', 'e'])
    expect([...left.keys()].toSorted()).toEqual(['a', 'e'])
  })

  test('a sentence vector that was marked recently is not marked again', async () => {
    await store().saveSentenceVectors(vectors({ a: [1] }), 1000)
    await store().markSentenceVectors(['a'], { at: 3000, before: 1000 })
    expect(await store().removeOld(before(1001), 2)).toBe(1)
  })
}
