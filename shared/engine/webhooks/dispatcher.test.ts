import { expect, test } from 'vitest'
import { asNew, endedTask, fixture, inline, url } from './dispatcher-fixture.cases.ts'

test('loads events for stored configs later, without losing any, if too many queues are in memory', async () => {
  const { store, delivered, gate, open } = await fixture({ queuesMax: 10, knownTasksMax: 5 })
  const { dispatcher, registrations } = open()
  const { promise, resolve: letGo } = Promise.withResolvers<void>()
  gate.hold = promise
  const tasks = await Promise.all(Array.from({ length: 60 }, () => endedTask(store)))
  for (const { before, after } of tasks) {
    await registrations.set(after, inline('c'), asNew)
    dispatcher.committed(before, after)
  }
  await expect.poll(() => dispatcher.queued).toBeGreaterThan(0)
  expect(dispatcher.queued).toBeLessThanOrEqual(30)
  letGo()
  await expect.poll(() => delivered.length).toBe(180)
  for (const { after } of tasks) {
    const its = delivered.filter(({ task }) => task === after.id).map(({ sequence }) => sequence)
    expect(its).toEqual([1, 2, 3])
  }
  await expect.poll(() => dispatcher.queued).toBe(0)
  await dispatcher.drain(1000)
})

test("a failing receiver's backlog leaves memory for other receivers and for the global webhook", async () => {
  const globalWebhook = { url: 'http://global.example/' }
  const { store, delivered, gate, ended, queueLength, open } = await fixture({ queuesMax: 20, globalWebhook })
  const { dispatcher, registrations } = open()
  const { promise, resolve: letGo } = Promise.withResolvers<void>()
  gate.hold = promise
  gate.only = 'http://hangs.example/'
  const owed = async (to: string | undefined) => {
    const { before, after } = await endedTask(store)
    if (to !== undefined) await registrations.set(after, { id: 'c', url: to }, asNew)
    dispatcher.committed(before, after)
  }
  for (let i = 0; i < 60; i += 1) await owed(gate.only)
  await expect.poll(queueLength).toBeGreaterThanOrEqual(60)
  for (const to of [url, undefined]) await owed(to)
  await expect
    .poll(() => delivered.map((one) => one.url).sort())
    .toEqual([...Array.from({ length: 3 }, () => globalWebhook.url), ...Array.from({ length: 3 }, () => url)])
  letGo()
  await expect.poll(() => delivered.length, { timeout: 100_000 }).toBe(186)
  await expect.poll(queueLength).toBe(0)
  expect(ended['queue_full']).toBeUndefined()
  await dispatcher.drain(1000)
})

test("loses and counts the global webhook's events that exceed the limit on queues", async () => {
  const { store, delivered, gate, ended, open } = await fixture({ queuesMax: 2, globalWebhook: { url } })
  const { dispatcher } = open()
  const { promise, resolve: letGo } = Promise.withResolvers<void>()
  gate.hold = promise
  for (let i = 0; i < 3; i += 1) {
    const { before, after } = await endedTask(store)
    dispatcher.committed(before, after)
  }
  expect(ended).toEqual({ queue_full: 3 })
  letGo()
  await expect.poll(() => delivered.length).toBe(6)
  await dispatcher.drain(1000)
})

test('delivers only one event at a time per task and config', async () => {
  const { store, delivered, gate, open } = await fixture()
  const { dispatcher, registrations } = open()
  const { before, after } = await endedTask(store)
  for (const id of ['one', 'two']) await registrations.set(after, inline(id), asNew)
  for (let i = 0; i < 5; i += 1) dispatcher.committed(before, after)
  await expect.poll(() => delivered.length).toBe(6)
  expect(gate.max).toBe(2)
  await dispatcher.drain(1000)
})

test('loads no further large events while too many bytes are held', async () => {
  const { store, delivered, gate, open } = await fixture({ bytesMax: 1 })
  const { dispatcher, registrations } = open()
  for (let i = 0; i < 20; i += 1) {
    const { before, after } = await endedTask(store, 'x'.repeat(50_000))
    await registrations.set(after, inline('c'), asNew)
    dispatcher.committed(before, after)
  }
  await expect.poll(() => delivered.length).toBe(60)
  // The dispatcher loads at most this number of tasks concurrently.
  expect(gate.max).toBeLessThanOrEqual(8)
  await dispatcher.drain(1000)
})

test('a shutdown leaves stored configs to the next start, which repeats the aborted event', async () => {
  const { store, delivered, gate, open } = await fixture()
  const first = open()
  gate.hold = new Promise(() => {})
  const { before, after } = await endedTask(store)
  await first.registrations.set(after, inline('c'), asNew)
  first.dispatcher.committed(before, after)
  await expect.poll(() => gate.inFlight).toBe(1)
  await first.dispatcher.drain(50)
  expect(delivered).toEqual([])
  gate.hold = undefined
  const second = open()
  await second.dispatcher.start()
  await expect.poll(() => delivered.map(({ sequence }) => sequence)).toEqual([1, 2, 3])
  await expect.poll(async () => (await store.webhooks.listOpenPushConfigs({ limit: 9 })).items).toEqual([])
  await second.dispatcher.drain(1000)
})

test('a later start removes a config without a task, unless the task may still be created', async () => {
  const { store, open } = await fixture()
  const fresh = { id: 'a', owner: 'o', createdAt: new Date().toISOString() }
  const old = { id: 'b', owner: 'o', createdAt: '2026-01-01T00:00:00.000000+00:00' }
  const first = open()
  for (const task of [fresh, old]) await first.registrations.set(task, inline('c'), asNew)
  const { dispatcher } = open()
  await dispatcher.start()
  await expect.poll(() => store.webhooks.findPushConfig(old, 'c')).toBeUndefined()
  expect(await store.webhooks.findPushConfig(fresh, 'c')).toBeDefined()
  await dispatcher.drain(1000)
})

test('a config receives no events from another task with the same id', async () => {
  const { store, delivered, open } = await fixture()
  const { dispatcher, registrations } = open()
  const { before, after } = await endedTask(store)
  const woken = { ...asNew, isNew: false }
  await registrations.set({ ...after, owner: 'another' }, inline('theirs'), woken)
  await registrations.set({ ...after, createdAt: '2020' }, inline('earlier'), woken)
  dispatcher.committed(before, after)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(delivered).toEqual([])
  await dispatcher.drain(1000)
})

test('uses the committed record for events sent immediately, and loads delayed events from the store', async () => {
  const read: string[] = []
  const loadTask = async (id: string) => {
    read.push(id)
    return store.loadTask(id)
  }
  const { store, delivered, gate, open } = await fixture({ loadTask, limits: { totalMax: 1 } })
  const { dispatcher, registrations } = open()
  const { promise, resolve: letGo } = Promise.withResolvers<void>()
  gate.hold = promise
  const tasks = await Promise.all([endedTask(store), endedTask(store)])
  for (const { before, after } of tasks) {
    await registrations.set(after, inline('c'), asNew)
    dispatcher.committed(before, after)
    await expect.poll(() => gate.inFlight).toBe(1)
  }
  await expect.poll(() => dispatcher.queued).toBe(6)
  expect(read).toEqual([])
  letGo()
  await expect.poll(() => delivered.length).toBe(6)
  expect(new Set(read)).toEqual(new Set([tasks[1]?.after.id]))
  await dispatcher.drain(1000)
})
