import { expect, test } from 'vitest'
import { calculate } from './calculation.ts'

const never = new AbortController().signal

test('the child process returns the outcome and runs the next calculation', async () => {
  expect(await calculate({ expression: '6 * 7' }, never)).toMatchObject({ ok: true, result: 42 })
  expect(await calculate({ expression: '6 +' }, never)).toMatchObject({ ok: false, fault: 'syntax' })
  expect(await calculate({ expression: '6 * 8' }, never)).toMatchObject({ ok: true, result: 48 })
})

test('terminates endless calculations at the time limit without blocking parallel ones', async () => {
  const endless = calculate({ expression: 'factorial(1e9)' }, never, { timeoutMs: 1500 })
  expect(await calculate({ expression: '1 + 1' }, never)).toMatchObject({ result: 2 })
  expect(await endless).toMatchObject({ ok: false, fault: 'time' })
})

test('a matrix that exhausts the memory terminates only its own process', async () => {
  expect(
    await calculate({ expression: 'ones(1e9)' }, never, { memoryMb: 64, timeoutMs: 60_000 }),
  ).toMatchObject({
    ok: false,
    fault: 'memory',
  })
  expect(await calculate({ expression: '1 + 1' }, never)).toMatchObject({ result: 2 })
})

test('an aborted signal terminates the calculation', async () => {
  const stop = new AbortController()
  const running = calculate({ expression: 'factorial(1e9)' }, stop.signal)
  stop.abort(new Error('canceled'))
  await expect(running).rejects.toThrow('canceled')
  await expect(calculate({ expression: '1' }, stop.signal)).rejects.toThrow('canceled')
})
