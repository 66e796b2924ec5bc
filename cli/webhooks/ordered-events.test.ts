import { status } from '@parley/tools/testing/wire-samples'
import type { NumberedEvent } from '@parley/wire/codecs/parley/events'
import { expect, test } from 'vitest'
import { OrderedEvents } from './ordered-events.ts'

const event = (sequence: number) => status(sequence, 'working') as NumberedEvent
const numbers = (ordered: OrderedEvents) => ordered.take().map(({ sequence }) => sequence)

test('each sequence number is yielded once and in order, whichever source delivers it first', () => {
  const ordered = new OrderedEvents()
  ordered.offer(event(2), 'webhook')
  expect([numbers(ordered), ordered.lastInOrder]).toEqual([[], 0])
  ordered.offer(event(1), 'log')
  ordered.offer(event(2), 'log')
  ordered.offer(event(1), 'webhook')
  expect([numbers(ordered), ordered.lastInOrder]).toEqual([[1, 2], 2])
  expect(ordered.counts).toEqual({ webhook: 1, log: 1 })
  expect(numbers(ordered)).toEqual([])
})

test('the number of held events is bounded, but the event that closes the gap is always accepted', () => {
  const ordered = new OrderedEvents()
  for (let sequence = 2; sequence <= 1500; sequence++) ordered.offer(event(sequence), 'webhook')
  ordered.offer(event(1), 'log')
  expect(ordered.lastInOrder).toBe(1001)
  // Duplicates do not count against the limit.
  for (let sequence = 1; sequence <= 1001; sequence++) ordered.offer(event(sequence), 'webhook')
  ordered.offer(event(1003), 'webhook')
  ordered.offer(event(1002), 'webhook')
  expect(ordered.lastInOrder).toBe(1003)
})

test('a waiting reader is woken by the next event or by the signal', async () => {
  const ordered = new OrderedEvents()
  const { signal } = new AbortController()
  const hearing = ordered.something(signal)
  ordered.offer(event(1), 'webhook')
  await hearing
  const over = new AbortController()
  const waiting = ordered.something(over.signal)
  over.abort()
  expect(await waiting).toBeUndefined()
})
