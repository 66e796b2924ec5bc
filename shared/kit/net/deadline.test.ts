import { expect, test } from 'vitest'
import { Deadline } from './deadline.ts'

const never = 60_000
const reasonsOf = (deadline: Deadline) => {
  const reasons: string[] = []
  deadline.onEnd(({ reason }) => reasons.push(reason))
  return reasons
}

test('the caller’s signal ends the deadline, calls the listener once and passes on its reason', () => {
  const caller = new AbortController()
  using deadline = new Deadline(never, caller.signal)
  const { signal } = deadline
  const reasons = reasonsOf(deadline)
  expect(() => deadline.throwIfEnded()).not.toThrow()
  caller.abort()
  expect(reasons).toEqual(['aborted'])
  expect(signal.reason).toMatchObject({ reason: 'aborted' })
  expect(() => deadline.throwIfEnded()).toThrow('The request was aborted')
})

test('a late listener is called immediately, and a late signal is already aborted', () => {
  using deadline = new Deadline(never, AbortSignal.abort())
  expect(reasonsOf(deadline)).toEqual(['aborted'])
  expect(deadline.signal.aborted).toBe(true)
})

test('a deadline ends after its time limit', async () => {
  using deadline = new Deadline(1, undefined)
  const { promise, resolve } = Promise.withResolvers<string>()
  deadline.onEnd(({ reason }) => resolve(reason))
  expect(await promise).toBe('timeout')
})

test('no listener is called after disposal', () => {
  const caller = new AbortController()
  const deadline = new Deadline(never, caller.signal)
  const reasons = reasonsOf(deadline)
  deadline[Symbol.dispose]()
  caller.abort()
  expect(reasons).toEqual([])
  expect(deadline.signal.aborted).toBe(false)
})
