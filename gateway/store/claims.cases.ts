import { describe, expect, test } from 'vitest'
import type { Claims } from './claims.ts'

interface Opened {
  one: Claims
  /** A second connection, like one from another process. */
  other: Claims
  count: () => Promise<number>
}

/** Defines conformance cases for stores of claims. */
export function claimsCases(name: string, open: () => Promise<Opened>): void {
  describe(`claims on ${name}`, () => {
    test('the first holder keeps the claim until it expires', async () => {
      const { one, other } = await open()
      expect(await one.hold('a', 'first', 60_000)).toBe(true)
      expect(await other.hold('a', 'second', 60_000)).toBe(false)
      expect(await other.hold('b', 'second', 60_000)).toBe(true)
      expect(await other.hold('a', 'first', -1)).toBe(true)
      expect(await one.hold('a', 'second', 60_000)).toBe(true)
    })

    test('only one of 20 concurrent holders gets the claim', async () => {
      const { one, other } = await open()
      const holders = Array.from({ length: 20 }, (_, n) => (n % 2 ? one : other).hold('a', `h${n}`, 60_000))
      expect((await Promise.all(holders)).filter(Boolean)).toHaveLength(1)
    })

    test('holders returns the holders with the prefix whose claims have not expired', async () => {
      const { one, other } = await open()
      await one.hold('a', 'key x', 60_000)
      await other.hold('b', 'key y', 60_000)
      await one.hold('c', 'key z', -1)
      await one.hold('d', 'another', 60_000)
      expect((await other.holders('key ')).sort()).toEqual(['key x', 'key y'])
    })

    test('expired claims are removed', async () => {
      const { one, other, count } = await open()
      for (let n = 0; n < 12; n++) await one.hold(`old ${n}`, 'holder', -1)
      for (let n = 0; n < 5; n++) await other.hold(`new ${n}`, 'holder', 60_000)
      expect(await count()).toBeLessThanOrEqual(6)
    })
  })
}
