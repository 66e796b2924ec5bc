import type { TaskState } from '@parley/wire/model/task'
import { expect, test } from 'vitest'
import { InProcessEventBus } from './in-process.ts'
import { type RestOptions, untilResting } from './until-resting.ts'

const status = (sequence: number, state: TaskState) => ({
  eventId: `e${sequence}`,
  sequence,
  timestamp: '',
  taskId: 't',
  contextId: 'c',
  kind: 'status-update' as const,
  status: { state, timestamp: '' },
  final: state === 'completed',
})

/** A wait whose events and reads the test controls. */
function scene(given: Partial<RestOptions> = {}) {
  const bus = new InProcessEventBus()
  const read = { isAtRest: false, count: 0 }
  let hasEnded = false
  const waiting = untilResting({
    bus,
    taskId: 't',
    afterSequence: 0,
    isAtRest: async () => {
      read.count += 1
      return read.isAtRest
    },
    signals: [],
    maxMs: 10_000,
    ...given,
  })
  const wait = (async () => {
    await waiting
    hasEnded = true
  })()
  const endsSoon = async () => {
    await new Promise((resolve) => setTimeout(resolve, 20))
    return hasEnded
  }
  return { bus, read, wait, endsSoon }
}

test.each(['completed', 'failed', 'canceled', 'rejected', 'input-required', 'payment-required'] as const)(
  'the wait ends with the status %s, and not before',
  async (state) => {
    const { bus, wait, endsSoon, read } = scene()
    bus.publish('t', [status(1, 'working')])
    expect(await endsSoon()).toBe(false)
    bus.publish('t', [status(2, state)])
    await wait
    expect(bus.topics).toBe(0)
    expect(read.count).toBe(0)
  },
)

test('an event that is published in the same turn as the call ends the wait', async () => {
  const { bus, endsSoon } = scene()
  bus.publish('t', [status(1, 'completed')])
  expect(await endsSoon()).toBe(true)
})

test('an earlier pause, which the bus delivers late, does not end the wait', async () => {
  const { bus, wait, endsSoon } = scene({ afterSequence: 2 })
  bus.publish('t', [status(2, 'input-required')])
  expect(await endsSoon()).toBe(false)
  bus.publish('t', [status(3, 'completed')])
  await wait
})

test('a notice without details leads to a read of the store', async () => {
  const { bus, wait, read, endsSoon } = scene()
  bus.publish('t', [{ kind: 'changed' } as never])
  expect(await endsSoon()).toBe(false)
  expect(read.count).toBe(1)
  read.isAtRest = true
  bus.publish('t', [{ kind: 'changed' } as never])
  await wait
})

test('a lost notification delays the end until the next read', async () => {
  const { wait, read, endsSoon } = scene({ recheckMs: 50 })
  expect(await endsSoon()).toBe(false)
  read.isAtRest = true
  await wait
})

test('the wait ends after its maximum time', async () => {
  const { bus, wait } = scene({ maxMs: 30 })
  await wait
  expect(bus.topics).toBe(0)
})

test('each signal ends the wait, even one that was aborted before', async () => {
  const [client, server] = [new AbortController(), new AbortController()]
  const { wait, endsSoon } = scene({ signals: [client.signal, server.signal] })
  expect(await endsSoon()).toBe(false)
  server.abort()
  await wait
  await scene({ signals: [client.signal, server.signal] }).wait
})

test('10,000 waiting calls use one timer and one listener each, and all end with one event', async () => {
  const bus = new InProcessEventBus()
  const before = process.memoryUsage().heapUsed
  const waits = Array.from({ length: 10_000 }, () =>
    untilResting({
      bus,
      taskId: 't',
      afterSequence: 0,
      isAtRest: async () => false,
      signals: [],
      maxMs: 60_000,
    }),
  )
  await new Promise((resolve) => setImmediate(resolve))
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(50 * 1024 * 1024)
  bus.publish('t', [status(1, 'completed')])
  await Promise.all(waits)
  expect(bus.topics).toBe(0)
})
