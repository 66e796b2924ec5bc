import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import type { WebhookMetrics } from '../process/webhook-metrics.ts'
import { MemoryWebhooks } from '../store/memory-webhooks.ts'
import { createdIn } from '../store/sample-record.cases.ts'
import { openSqliteStore } from '../store/sqlite.ts'
import type { Store, TaskRecord } from '../store/store.ts'
import type { Delivery, DeliveryResult } from './deliver.ts'
import { type DispatcherOptions, WebhookDispatcher } from './dispatcher.ts'
import { Registrations } from './registrations.ts'

const url = 'http://receiver.example/hook'

/** The real store, and a deliverer that a test may hold. */
async function scene(options: Partial<DispatcherOptions> & { knownTasksMax?: number } = {}) {
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-webhooks-'))
  const store = await openSqliteStore({ file: path.join(folder, 'agent.db') })
  onTestFinished(async () => {
    await store[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })
  const ended: Record<string, number> = {}
  const metrics: WebhookMetrics = {
    ended: (outcome, events) => (ended[outcome] = (ended[outcome] ?? 0) + events),
    delivered: () => {},
    watchQueue: () => {},
  }
  const delivered: { url: string; task: string; sequence: number }[] = []
  const gate = { hold: undefined as Promise<void> | undefined, underWay: 0, most: 0 }
  const deliver = async ({ url: to, body, signal }: Delivery): Promise<DeliveryResult> => {
    gate.underWay += 1
    gate.most = Math.max(gate.most, gate.underWay)
    const aborted = new Promise((resolve) => signal?.addEventListener('abort', resolve))
    await Promise.race([gate.hold, aborted])
    gate.underWay -= 1
    if (signal?.aborted === true) return { outcome: 'aborted', attempts: 1 }
    const event = JSON.parse(body.toString()) as { task_id: string; sequence: number }
    delivered.push({ url: to, task: event.task_id, sequence: event.sequence })
    return { outcome: 'delivered', attempts: 1, lastStatus: 200 }
  }
  const parts = (): DispatcherOptions => ({
    registrations: new Registrations({
      stored: store.webhooks,
      memory: new MemoryWebhooks(),
      check: async () => {},
      shared: false,
      ...(options.knownTasksMax !== undefined && { knownTasksMax: options.knownTasksMax }),
    }),
    loadTask: (id) => store.loadTask(id),
    deliverer: { deliver },
    metrics,
    log: pino({ level: 'silent' }),
    ...options,
  })
  const open = () => {
    const made = parts()
    return { dispatcher: new WebhookDispatcher(made), registrations: made.registrations }
  }
  return { store, ended, delivered, gate, open }
}

/** An ended task with three events, and how it was before them. */
async function endedTask(store: Store): Promise<{ before: TaskRecord; after: TaskRecord }> {
  const at = '2026-01-01T00:00:00.000000+00:00'
  const events = [1, 2, 3].map((sequence) => ({
    eventId: `e${sequence}`,
    sequence,
    timestamp: at,
    kind: 'status-update' as const,
    status: { state: 'completed' as const, timestamp: at },
    final: sequence === 3,
  }))
  const after = await createdIn(store, 'completed', { events })
  return { before: { ...after, events: [] }, after }
}

const inline = (id: string) => ({ id, url })
const asNew = { longRunning: true, settled: 0, open: true, isNew: true }

test('more lines than are kept in mind: those of stored configs are looked up again, none is lost', async () => {
  const { store, delivered, gate, open } = await scene({ lanesMax: 10, knownTasksMax: 5 })
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
  await expect.poll(() => delivered.length, { timeout: 10_000 }).toBe(180)
  for (const { after } of tasks) {
    const its = delivered.filter(({ task }) => task === after.id).map(({ sequence }) => sequence)
    expect(its).toEqual([1, 2, 3])
  }
  await expect.poll(() => dispatcher.queued).toBe(0)
  await dispatcher.drain(1000)
})

test('the global webhook’s events beyond what is kept in mind are lost and counted', async () => {
  const { store, delivered, gate, ended, open } = await scene({ lanesMax: 2, globalWebhook: { url } })
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

test('one event is under way per task and config, however many there are', async () => {
  const { store, delivered, gate, open } = await scene()
  const { dispatcher, registrations } = open()
  const { before, after } = await endedTask(store)
  for (const id of ['one', 'two']) await registrations.set(after, inline(id), asNew)
  for (let i = 0; i < 5; i += 1) dispatcher.committed(before, after)
  await expect.poll(() => delivered.length).toBe(6)
  expect(gate.most).toBe(2)
  await dispatcher.drain(1000)
})

test('no further event is read while too many bytes are held', async () => {
  const { store, delivered, gate, open } = await scene({ bytesMax: 1 })
  const { dispatcher, registrations } = open()
  for (let i = 0; i < 20; i += 1) {
    const { before, after } = await endedTask(store)
    await registrations.set(after, inline('c'), asNew)
    dispatcher.committed(before, after)
  }
  await expect.poll(() => delivered.length).toBe(60)
  // As many as are read at the same time.
  expect(gate.most).toBeLessThanOrEqual(8)
  await dispatcher.drain(1000)
})

test('a stop leaves stored configs to the next start, which begins with the event that was under way', async () => {
  const { store, delivered, gate, open } = await scene()
  const first = open()
  gate.hold = new Promise(() => {})
  const { before, after } = await endedTask(store)
  await first.registrations.set(after, inline('c'), asNew)
  first.dispatcher.committed(before, after)
  await expect.poll(() => gate.underWay).toBe(1)
  await first.dispatcher.drain(50)
  expect(delivered).toEqual([])
  gate.hold = undefined
  const second = open()
  await second.dispatcher.start()
  await expect.poll(() => delivered.map(({ sequence }) => sequence)).toEqual([1, 2, 3])
  await expect.poll(async () => (await store.webhooks.listOpenPushConfigs({ limit: 9 })).items).toEqual([])
  await second.dispatcher.drain(1000)
})

test('a config whose task never came is removed by a later start, unless it may still come', async () => {
  const { store, open } = await scene()
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

test('a config hears of no other task that has the same id', async () => {
  const { store, delivered, open } = await scene()
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
