import { AnswerBudget, type AnswerClaim } from '@parley/kit/process/answer-budget'
import type { ArtifactDelta, StatusUpdate } from '@parley/wire/model/event'
import type { TaskState } from '@parley/wire/model/task'
import { expect, test } from 'vitest'
import { followTask, SlowReaderError, UnreadBudgetExceeded } from './follow-task.ts'
import { InProcessEventBus } from './in-process.ts'

const event = (sequence: number, state: TaskState = 'working'): StatusUpdate => ({
  eventId: `e${sequence}`,
  sequence,
  timestamp: '',
  taskId: 't',
  contextId: 'c',
  kind: 'status-update',
  status: { state, timestamp: '' },
  final: state === 'completed',
})

/** A store and a bus whose timing and losses the test controls. */
function scene(
  afterSequence = 0,
  more: { bufferMax?: number; recheckMs?: number; claim?: AnswerClaim } = {},
) {
  const bus = new InProcessEventBus()
  const stored: StatusUpdate[] = []
  const abort = new AbortController()
  let onRead: () => void = () => {}
  const backfill = async (after: number) => {
    const events = stored.slice(after)
    const last = stored.at(-1)
    onRead()
    return {
      events,
      resting: last !== undefined && ['completed', 'input-required'].includes(last.status.state),
    }
  }
  const follower = followTask({
    bus,
    taskId: 't',
    afterSequence,
    backfill,
    signal: abort.signal,
    recheckMs: 20,
    ...more,
  })
  const commit = (...events: StatusUpdate[]) => {
    stored.push(...events)
    bus.publish('t', events)
  }
  const whileReading = (act: () => void) => {
    onRead = () => {
      onRead = () => {}
      act()
    }
  }
  return { bus, stored, abort, follower, commit, whileReading }
}

const numbers = async (follower: AsyncIterable<unknown>) =>
  (await Array.fromAsync(follower as AsyncIterable<StatusUpdate>)).map(({ sequence }) => sequence)

test('returns events committed during the store read exactly once', async () => {
  const { follower, commit, whileReading } = scene()
  commit(event(1), event(2))
  whileReading(() => commit(event(3), event(4, 'completed')))
  expect(await numbers(follower)).toEqual([1, 2, 3, 4])
})

test('returns the deltas of a task that ends during the store read before its final event', async () => {
  const { follower, commit, bus, whileReading } = scene()
  const delta = (text: string) => ({ kind: 'artifact-delta', taskId: 't', text }) as unknown as ArtifactDelta
  whileReading(() => bus.publish('t', [delta('of nothing any more')]))
  const reading = follower.next()
  commit(event(1))
  bus.publish('t', [delta('one'), delta('two')])
  commit(event(2, 'completed'))
  const told = [(await reading).value, ...(await Array.fromAsync(follower))]
  expect(told).toMatchObject([{ sequence: 1 }, { text: 'one' }, { text: 'two' }, { sequence: 2 }])
})

test('returns an event that is both read and received only once', async () => {
  const { follower, stored, bus } = scene()
  const reading = follower.next()
  stored.push(event(1))
  bus.publish('t', [event(1)])
  stored.push(event(2, 'completed'))
  bus.publish('t', [event(1), event(2, 'completed')])
  expect([(await reading).value, ...(await Array.fromAsync(follower))]).toMatchObject([
    { sequence: 1 },
    { sequence: 2 },
  ])
})

test('reads an event from the store if its notification was lost', async () => {
  const { follower, stored } = scene()
  const all = numbers(follower)
  await new Promise((resolve) => setImmediate(resolve))
  stored.push(event(1), event(2, 'completed'))
  expect(await all).toEqual([1, 2])
})

test('fills a gap in the received events from the store', async () => {
  const { follower, stored, bus } = scene(0, { recheckMs: 60_000 })
  const all = numbers(follower)
  await new Promise((resolve) => setImmediate(resolve))
  stored.push(event(1), event(2), event(3, 'completed'))
  bus.publish('t', [event(3, 'completed')])
  expect(await all).toEqual([1, 2, 3])
})

test('a pause that has already been answered does not end the stream', async () => {
  const { follower, commit } = scene()
  commit(event(1), event(2, 'input-required'), event(3))
  const all = numbers(follower)
  await new Promise((resolve) => setImmediate(resolve))
  commit(event(4, 'completed'))
  expect(await all).toEqual([1, 2, 3, 4])
})

test('a stream that starts after an unreachable sequence number returns no events and ends with the task', async () => {
  const { follower, commit } = scene(99, { recheckMs: 60_000 })
  const all = numbers(follower)
  await new Promise((resolve) => setImmediate(resolve))
  commit(event(1), event(2, 'completed'))
  expect(await all).toEqual([])
})

test('cuts off a reader that is slower than the buffer allows', async () => {
  const { follower, bus, commit } = scene(0, { bufferMax: 5 })
  commit(event(1))
  await follower.next()
  for (let i = 0; i < 6; i += 1)
    bus.publish('t', [
      {
        kind: 'artifact-delta',
        taskId: 't',
        contextId: 'c',
        timestamp: '',
        artifact: { artifactId: 'a', name: 'n', parts: [] },
      },
    ])
  await expect(Array.fromAsync(follower)).rejects.toBeInstanceOf(SlowReaderError)
  expect(bus.topics).toBe(0)
})

const delta = (text: string): ArtifactDelta => ({
  kind: 'artifact-delta',
  taskId: 't',
  contextId: 'c',
  timestamp: '',
  artifact: { artifactId: 'a', name: 'n', parts: [{ kind: 'text', text }] },
})

/** The caller has 200,000 unread bytes in another response, which leaves 300,000. */
function budget() {
  const answers = new AnswerBudget({ callerMaxBytes: 500_000, processMaxBytes: 500_000 })
  answers.open('alice').reserve(200_000)
  return { claim: answers.open('alice'), bytes: () => answers.bytes - 200_000 }
}

test('cuts off a reader and releases its memory when its unread items exceed the budget', async () => {
  const { claim, bytes } = budget()
  const { follower, bus, commit } = scene(0, { claim })
  commit(event(1))
  await follower.next()
  for (let i = 0; i < 2; i += 1) bus.publish('t', [delta('x'.repeat(100_000))])
  expect(bytes()).toBeGreaterThan(200_000)
  expect(await follower.next()).toMatchObject({ value: { kind: 'artifact-delta' } })
  expect(bytes()).toBeLessThan(200_000)
  for (let i = 0; i < 2; i += 1) bus.publish('t', [delta('x'.repeat(100_000))])
  expect(bytes()).toBe(0)
  await expect(follower.next()).rejects.toBeInstanceOf(UnreadBudgetExceeded)
  expect(bus.topics).toBe(0)
})

test('reads an event that exceeds the budget from the store later', async () => {
  const { claim, bytes } = budget()
  const { follower, bus, commit } = scene(0, { claim })
  commit(event(1))
  await follower.next()
  bus.publish('t', [delta('x'.repeat(200_000))])
  const large = event(2)
  large.status.state = 'x'.repeat(200_000) as TaskState
  commit(large)
  expect(bytes()).toBeLessThan(250_000)
  expect(await follower.next()).toMatchObject({ value: { kind: 'artifact-delta' } })
  expect(await follower.next()).toMatchObject({ value: { sequence: 2 } })
  await follower.return()
  expect(bytes()).toBe(0)
})

test('a reader that stops releases everything, even if it stops before its first read', async () => {
  const { follower, abort, bus } = scene(0, { recheckMs: 60_000 })
  const next = follower.next()
  expect(bus.topics).toBe(1)
  abort.abort()
  expect((await next).done).toBe(true)
  expect(bus.topics).toBe(0)
})
