import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Rest } from './rest.ts'

beforeEach(() => vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => vi.useRealTimers())

/** Somebody who is asked; each question waits for its answer. */
function somebody() {
  const rest = new Rest()
  const asked: PromiseWithResolvers<string>[] = []
  const ask = () =>
    rest
      .outside(() => {
        const question = Promise.withResolvers<string>()
        asked.push(question)
        return question.promise
      })
      .catch((error: Error) => error.message)
  return { asked, ask }
}

test('who could not be reached is left alone for a second, then asked by one alone', async () => {
  const { asked, ask } = somebody()
  const first = ask()
  asked[0]?.reject(new Error('down'))
  expect(await first).toBe('down')
  expect(await Promise.all([ask(), ask()])).toEqual(['down', 'down'])
  vi.advanceTimersByTime(999)
  expect(await ask()).toBe('down')
  vi.advanceTimersByTime(1)
  const trial = ask()
  expect(await Promise.all([ask(), ask()])).toEqual(['down', 'down'])
  expect(asked).toHaveLength(2)
  asked[1]?.reject(new Error('still down'))
  expect([await trial, await ask()]).toEqual(['still down', 'still down'])
  expect(asked).toHaveLength(2)
})

test('one answer ends the rest, for all', async () => {
  const { asked, ask } = somebody()
  const first = ask()
  asked[0]?.reject(new Error('down'))
  await first
  vi.advanceTimersByTime(1000)
  const trial = ask()
  asked[1]?.resolve('well')
  expect(await trial).toBe('well')
  const both = [ask(), ask()]
  for (const question of asked) question.resolve('well')
  expect(await Promise.all(both)).toEqual(['well', 'well'])
})

test('who answers is asked by everybody at once', async () => {
  const { asked, ask } = somebody()
  const all = Array.from({ length: 10 }, ask)
  expect(asked).toHaveLength(10)
  for (const question of asked) question.resolve('well')
  expect(await Promise.all(all)).toEqual(all.map(() => 'well'))
})
