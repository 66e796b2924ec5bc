import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { AgentClient } from '@parley/client/internal/client'
import { RpcError } from '@parley/client/internal/rpc-error'
import { type NumberedEvent, positionOf, readNumberedEvent } from '@parley/wire/codecs/parley/events'
import type { WirePushConfig } from '@parley/wire/codecs/parley/shapes'
import { isPaused } from '@parley/wire/model/task'
import { sentenceOf } from '../terminal/faults.ts'
import { OrderedEvents } from './ordered-events.ts'
import { refusedWebhook } from './refused-webhook.ts'
import { WebhookServer } from './webhook-server.ts'

export interface WebhookEventsOptions {
  host: string
  port: number
  /** The address at which the agent reaches this machine. Default: the listening address. */
  publicUrl?: string | undefined
  signal: AbortSignal
  /** Called with problems and, at the end, with a summary. */
  note: (line: string) => void
  /** Time without events after which missed events are fetched. Default 10 s. A gap triggers a fetch immediately. */
  silenceMs?: number
}

/**
 * Yields all events of a task until it ends or pauses. Past events come from `tasks/events` and new ones from a
 * temporary webhook; events that the webhook misses are fetched.
 */
export async function* webhookEvents(
  client: AgentClient,
  task: string,
  options: WebhookEventsOptions,
): AsyncGenerator<NumberedEvent> {
  const { signal } = options
  const ordered = new OrderedEvents()
  const token = randomBytes(32).toString('base64url')
  await using server = await WebhookServer.start({
    ...options,
    token,
    receive: (event) => {
      if (positionOf(event).taskId === task) ordered.offer(event, 'webhook')
      return 200
    },
  })
  const config = { id: randomUUID(), url: options.publicUrl ?? server.url, token }
  await register(client, task, config, signal)
  try {
    for (;;) {
      await catchUp(client, task, ordered, signal)
      let last: NumberedEvent | undefined
      for (const event of await whatComes(ordered, options)) yield (last = event)
      if (last !== undefined && (await isAtRest(client, last, signal))) return
    }
  } finally {
    await remove(client, task, config.id).catch((thrown: unknown) =>
      options.note(`The webhook was not removed: ${sentenceOf(thrown)}`),
    )
    const { webhook, log } = ordered.counts
    options.note(`${webhook} events by webhook, ${log} by tasks/events.`)
  }
}

/** Returns the next events in sequence, or an empty list if missed events should be fetched. */
async function whatComes(ordered: OrderedEvents, options: WebhookEventsOptions): Promise<NumberedEvent[]> {
  const there = ordered.take()
  if (there.length > 0) return there
  const { signal, silenceMs = 10_000 } = options
  const over = new AbortController()
  await Promise.race([
    ordered.something(over.signal),
    wait(silenceMs, undefined, { signal: AbortSignal.any([signal, over.signal]) }).catch(() => {}),
  ])
  over.abort()
  signal.throwIfAborted()
  return ordered.take()
}

async function register(client: AgentClient, task: string, config: WirePushConfig, signal: AbortSignal) {
  try {
    await client.setPushConfig(task, config, { signal })
  } catch (thrown) {
    if (!(thrown instanceof RpcError) || thrown.code !== -32602) throw thrown
    throw refusedWebhook(thrown)
  }
}

/** Ignores the caller's signal, because the webhook must be removed even after an abort. */
function remove(client: AgentClient, task: string, id: string): Promise<unknown> {
  return client.deletePushConfig(task, id, { signal: AbortSignal.timeout(5000) })
}

async function catchUp(client: AgentClient, task: string, ordered: OrderedEvents, signal: AbortSignal) {
  for (let more = true; more; ) {
    const before = ordered.lastInOrder
    const page = await client.events(task, { afterSequence: before, limit: 1000 }, { signal })
    for (const event of page.events.map(readNumberedEvent))
      if (event !== undefined) ordered.offer(event, 'log')
    more = page.more && ordered.lastInOrder > before
  }
}

/** Whether the task ended or is still paused. A paused task may have resumed before its next event arrives. */
async function isAtRest(client: AgentClient, last: NumberedEvent, signal: AbortSignal): Promise<boolean> {
  if (last.kind !== 'status-update') return false
  if (last.final) return true
  if (!isPaused(last.status.state)) return false
  const { status } = await client.get(positionOf(last).taskId, { historyLength: 0, signal })
  return isPaused(status.state)
}
