import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { WebhookMetrics } from '@parley/kit/process/webhook-metrics'
import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import { MemoryWebhooks } from '../store/memory/webhooks.ts'
import { createdIn } from '../store/sample-record.cases.ts'
import { openSqliteStore } from '../store/sqlite/store.ts'
import type { Store, TaskRecord } from '../store/store.ts'
import type { Delivery, DeliveryResult } from './deliverer.ts'
import { WebhookDispatcher } from './dispatcher.ts'
import type { DispatcherOptions } from './dispatcher-options.ts'
import { Registrations } from './registrations.ts'

export const url = 'http://receiver.example/hook'

/** Returns a real store, and a deliverer that the test can pause for all URLs or for one. */
export async function fixture(options: Partial<DispatcherOptions> & { knownTasksMax?: number } = {}) {
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-webhooks-'))
  const store = await openSqliteStore({ file: path.join(folder, 'agent.db') })
  onTestFinished(async () => {
    await store[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })
  const ended: Record<string, number> = {}
  let queueLength = () => 0
  const metrics: WebhookMetrics = {
    ended: (outcome, events) => (ended[outcome] = (ended[outcome] ?? 0) + events),
    delivered: () => {},
    watchQueue: (read) => (queueLength = read),
  }
  const delivered: { url: string; task: string; sequence: number }[] = []
  const gate = {
    hold: undefined as Promise<void> | undefined,
    only: undefined as string | undefined,
    inFlight: 0,
    max: 0,
  }
  const deliver = async ({ url: to, body, signal }: Delivery): Promise<DeliveryResult> => {
    gate.inFlight += 1
    gate.max = Math.max(gate.max, gate.inFlight)
    const aborted = new Promise((resolve) => signal?.addEventListener('abort', resolve))
    if (gate.only === undefined || gate.only === to) await Promise.race([gate.hold, aborted])
    gate.inFlight -= 1
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
  const open = (more: Partial<DispatcherOptions> = {}) => {
    const made = { ...parts(), ...more }
    return { dispatcher: new WebhookDispatcher(made), registrations: made.registrations }
  }
  return { store, ended, queueLength: () => queueLength(), delivered, gate, open }
}

/** Returns a completed task with three events that contain the text, and the record before those events. */
export async function endedTask(
  store: Store,
  text?: string,
  owner?: string,
): Promise<{ before: TaskRecord; after: TaskRecord }> {
  const at = '2026-01-01T00:00:00.000000+00:00'
  const ids = { messageId: randomUUID(), contextId: randomUUID(), taskId: randomUUID() }
  const reply = { role: 'agent' as const, ...ids, parts: [{ kind: 'text' as const, text: text ?? '' }] }
  const message = text === undefined ? undefined : reply
  const events = [1, 2, 3].map((sequence) => ({
    eventId: `e${sequence}`,
    sequence,
    timestamp: at,
    kind: 'status-update' as const,
    status: { state: 'completed' as const, timestamp: at, ...(message !== undefined && { message }) },
    final: sequence === 3,
  }))
  const after = await createdIn(store, 'completed', { events, ...(owner !== undefined && { owner }) })
  return { before: { ...after, events: [] }, after }
}

export const inline = (id: string) => ({ id, url })
export const asNew = { longRunning: true, settled: 0, open: true, isNew: true }
