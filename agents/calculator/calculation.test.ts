import { expect, test } from 'vitest'
import { calculate } from './calculation.ts'

const never = new AbortController().signal

test('a calculation in the other process gives its outcome, and the process serves the next', async () => {
  expect(await calculate({ expression: '6 * 7' }, never)).toMatchObject({ ok: true, result: 42 })
  expect(await calculate({ expression: '6 +' }, never)).toMatchObject({ ok: false, fault: 'syntax' })
  expect(await calculate({ expression: '6 * 8' }, never)).toMatchObject({ ok: true, result: 48 })
})

test('endless work ends at the time limit, and work beside it is not held up', async () => {
  const endless = calculate({ expression: 'factorial(1e9)' }, never, { timeoutMs: 1500 })
  expect(await calculate({ expression: '1 + 1' }, never)).toMatchObject({ result: 2 })
  expect(await endless).toMatchObject({ ok: false, fault: 'time' })
})

test('a matrix larger than the memory ends its process alone', async () => {
  expect(
    await calculate({ expression: 'ones(1e9)' }, never, { memoryMb: 64, timeoutMs: 60_000 }),
  ).toMatchObject({
    ok: false,
    fault: 'memory',
  })
  expect(await calculate({ expression: '1 + 1' }, never)).toMatchObject({ result: 2 })
})

test('an aborted signal ends the calculation', async () => {
  const stop = new AbortController()
  const running = calculate({ expression: 'factorial(1e9)' }, stop.signal)
  stop.abort(new Error('canceled'))
  await expect(running).rejects.toThrow('canceled')
  await expect(calculate({ expression: '1' }, stop.signal)).rejects.toThrow('canceled')
})
