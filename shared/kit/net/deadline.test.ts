import { expect, test } from 'vitest'
import { Deadline } from './deadline.ts'

const never = 60_000
const told = (deadline: Deadline) => {
  const reasons: string[] = []
  deadline.whenOver(({ reason }) => reasons.push(reason))
  return reasons
}

test('the caller’s signal ends it: the listener is told once, and the signal has the same reason', () => {
  const caller = new AbortController()
  using deadline = new Deadline(never, caller.signal)
  const { signal } = deadline
  const reasons = told(deadline)
  expect(() => deadline.throwIfOver()).not.toThrow()
  caller.abort()
  expect(reasons).toEqual(['aborted'])
  expect(signal.reason).toMatchObject({ reason: 'aborted' })
  expect(() => deadline.throwIfOver()).toThrow('The request was given up')
})

test('who listens or asks for the signal too late finds it over', () => {
  using deadline = new Deadline(never, AbortSignal.abort())
  expect(told(deadline)).toEqual(['aborted'])
  expect(deadline.signal.aborted).toBe(true)
})

test('time ends it', async () => {
  using deadline = new Deadline(1, undefined)
  const { promise, resolve } = Promise.withResolvers<string>()
  deadline.whenOver(({ reason }) => resolve(reason))
  expect(await promise).toBe('timeout')
})

test('once it is disposed nobody is told', () => {
  const caller = new AbortController()
  const deadline = new Deadline(never, caller.signal)
  const reasons = told(deadline)
  deadline[Symbol.dispose]()
  caller.abort()
  expect(reasons).toEqual([])
  expect(deadline.signal.aborted).toBe(false)
})
