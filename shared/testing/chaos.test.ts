import { describe, expect, test } from 'vitest'
import { hasServers } from './agent-processes.ts'
import { faultKinds, faultsOf, randomFrom } from './chaos-plan.ts'
import { chaosRun, isRight } from './chaos-run.ts'

test('the same seed makes the same faults, and each kind comes once before any comes again', () => {
  const first = (seed: number) =>
    Array.from(
      { length: 12 },
      (
        (faults) => () =>
          faults.next().value
      )(faultsOf(seed, 3)),
    )
  expect(first(7)).toEqual(first(7))
  expect(first(7)).not.toEqual(first(8))
  for (const from of [0, 4, 8]) {
    const kinds = first(7)
      .slice(from, from + 4)
      .map(({ kind }) => kind)
    expect(new Set(kinds)).toEqual(new Set(faultKinds))
  }
  const random = randomFrom(1)
  const drawn = Array.from({ length: 1000 }, random)
  expect(Math.min(...drawn)).toBeGreaterThanOrEqual(0)
  expect(Math.max(...drawn)).toBeLessThan(1)
  expect(new Set(drawn).size).toBe(1000)
})

describe.skipIf(!hasServers)('30 s of chaos (needs mongod, redis-server)', () => {
  test('no acknowledged task is lost, double or stuck, no event number is missing, every long_running webhook is complete', async () => {
    const figures = await chaosRun({ seed: 7, seconds: 30, say: () => {} })
    const right = {
      lost: 0,
      double: 0,
      stuck: 0,
      badEvents: 0,
      badWebhooks: 0,
      queued: 0,
      unhealthy: 0,
      unclear: {},
    }
    expect(figures).toMatchObject(right)
    expect(isRight(figures)).toBe(true)
    expect(Object.keys(figures.faults).sort()).toEqual([...faultKinds].sort())
  }, 240_000)
})
