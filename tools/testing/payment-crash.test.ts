import { expect, test } from 'vitest'
import { paymentCrashRun } from './payment-crash.ts'

test('after SIGKILL between settlement on a chain and work, the work is done or the payment is listed as orphaned', async () => {
  const { paid, earned, orphaned, ...wrong } = await paymentCrashRun({
    kills: 3,
    killWithinMs: 600,
    say: () => {},
  })
  expect(wrong).toMatchObject({ forgotten: 0, invented: 0, notDone: 0, stuck: 0 })
  expect(paid).toBeGreaterThanOrEqual(3)
  expect(earned + orphaned).toBe(paid)
})
