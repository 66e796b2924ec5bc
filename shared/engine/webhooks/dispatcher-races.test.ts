import { randomUUID } from 'node:crypto'
import { timestamp } from '@parley/wire/model/timestamp'
import { expect, test } from 'vitest'
import type { TaskRecord } from '../store/store.ts'
import { asNew, endedTask, fixture, inline, url } from './dispatcher-fixture.cases.ts'

/** Creates a dispatcher for a task that the test changes. */
async function withTask(options: Parameters<typeof fixture>[0] = {}) {
  let current: TaskRecord | undefined
  const of = await fixture({ loadTask: async () => current, ...options })
  const { after: whole } = await endedTask(of.store)
  const with_ = (events: number, more: Partial<TaskRecord> = {}): TaskRecord => ({
    ...whole,
    ...(events < 3 && { status: { state: 'working', timestamp: whole.updatedAt } }),
    events: whole.events.slice(0, events),
    ...more,
  })
  const { dispatcher, registrations } = of.open()
  /** Adds an event and notifies the dispatcher, as the engine does. */
  const commit = (before: TaskRecord, after: TaskRecord) => {
    current = after
    dispatcher.committed(before, after)
  }
  return { ...of, dispatcher, registrations, commit, with: with_, see: (now?: TaskRecord) => (current = now) }
}

test('an event committed while a config is being stored does not stop the tracking of its task', async () => {
  const { dispatcher, registrations, commit, with: at, see, delivered } = await withTask()
  see(at(0))
  const setting = registrations.set(at(0), inline('c'), { ...asNew, isNew: false })
  while (!registrations.mayHaveConfig(at(0))) await Promise.resolve()
  commit(at(0), at(1))
  await setting
  await expect.poll(() => delivered.map(({ sequence }) => sequence)).toEqual([1])
  await expect.poll(() => dispatcher.queued).toBe(0)
  commit(at(1), at(3))
  await expect.poll(() => delivered.map(({ sequence }) => sequence)).toEqual([1, 2, 3])
  await dispatcher.drain(1000)
})

test("a cleared task's last event does not stop the tracking of a new task with the same id", async () => {
  const { dispatcher, registrations, commit, with: at, gate, delivered } = await withTask()
  const { promise, resolve: letGo } = Promise.withResolvers<void>()
  gate.hold = promise
  await registrations.set(at(2), inline('old'), { ...asNew, longRunning: false, settled: 2 })
  commit(at(2), at(3))
  await expect.poll(() => gate.inFlight).toBe(1)
  const again = { createdAt: timestamp() }
  await registrations.set(at(0, again), inline('new'), { ...asNew, longRunning: false })
  letGo()
  await expect.poll(() => dispatcher.queued).toBe(0)
  commit(at(0, again), at(3, again))
  await expect.poll(() => delivered.map(({ sequence }) => sequence)).toEqual([3, 1, 2, 3])
  await dispatcher.drain(1000)
})

test('does not send events to the global webhook if a new config of the task takes them over', async () => {
  const globalWebhook = { url: 'http://global.example/' }
  const { dispatcher, registrations, commit, with: at, see, delivered } = await withTask({ globalWebhook })
  commit(at(0), at(1))
  see(at(3))
  await registrations.set(at(1), inline('own'), { ...asNew, settled: 1, isNew: false })
  commit(at(1), at(3))
  await expect.poll(() => delivered.filter((one) => one.url === url).length).toBe(2)
  await expect.poll(() => dispatcher.queued).toBe(0)
  const toGlobal = delivered.filter((one) => one.url === globalWebhook.url)
  expect(toGlobal.map(({ sequence }) => sequence)).toEqual([1])
  await dispatcher.drain(1000)
})

test('removes a config in memory together with its task, however recent the config is', async () => {
  const { dispatcher, registrations, commit, with: at, see, gate } = await withTask()
  const { promise, resolve: letGo } = Promise.withResolvers<void>()
  gate.hold = promise
  const young = { createdAt: timestamp() }
  await registrations.set(at(0, young), inline('c'), { ...asNew, longRunning: false })
  commit(at(0, young), at(1, young))
  await expect.poll(() => gate.inFlight).toBe(1)
  commit(at(1, young), at(3, young))
  see(undefined)
  letGo()
  await expect.poll(() => registrations.find(at(0, young), 'c')).toBeUndefined()
  await dispatcher.drain(1000)
})

test('a shutdown starts no further events for stored configs, but delivers those for configs in memory', async () => {
  const { dispatcher, registrations, commit, with: at, gate, delivered } = await withTask()
  const { promise, resolve: letGo } = Promise.withResolvers<void>()
  gate.hold = promise
  const [stored, memory] = [randomUUID(), randomUUID()]
  await registrations.set(at(0), { id: stored, url: `${url}/stored` }, asNew)
  await registrations.set(at(0), { id: memory, url: `${url}/memory` }, { ...asNew, longRunning: false })
  commit(at(0), at(3))
  await expect.poll(() => gate.inFlight).toBe(2)
  const drained = dispatcher.drain(10_000)
  letGo()
  await drained
  const of = (path: string) => delivered.filter((one) => one.url === `${url}/${path}`)
  expect(of('memory').map(({ sequence }) => sequence)).toEqual([1, 2, 3])
  expect(of('stored').map(({ sequence }) => sequence)).toEqual([1])
  expect(await registrations.find(at(3), stored)).toMatchObject({ settled: 1, open: true })
})

test("large events that a receiver does not accept do not delay another receiver's small events", async () => {
  const { store, delivered, gate, open } = await fixture({ bytesMax: 1000 })
  const { dispatcher, registrations } = open()
  const { promise, resolve: letGo } = Promise.withResolvers<void>()
  gate.hold = promise
  gate.only = 'http://hangs.example/'
  for (let i = 0; i < 20; i += 1) {
    const { before, after } = await endedTask(store, 'x'.repeat(50_000))
    await registrations.set(after, { id: 'c', url: gate.only }, asNew)
    dispatcher.committed(before, after)
  }
  await expect.poll(() => gate.inFlight).toBeGreaterThan(0)
  const { before, after } = await endedTask(store)
  await registrations.set(after, inline('c'), asNew)
  dispatcher.committed(before, after)
  await expect.poll(() => delivered.map(({ sequence }) => sequence)).toEqual([1, 2, 3])
  // The dispatcher loads at most this number of tasks concurrently.
  expect(gate.inFlight).toBeLessThanOrEqual(8)
  letGo()
  await expect.poll(() => delivered.length).toBe(63)
  await dispatcher.drain(1000)
})
