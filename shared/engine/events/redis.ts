import { randomUUID } from 'node:crypto'
import { connectRedis, type RedisConnection } from '@parley/kit/process/redis'
import type { Redis } from 'ioredis'
import type { BusMessage, EventBus, LiveItem, Subscription } from './event-bus.ts'

type Listener = (item: BusMessage) => void

export interface RedisEventBusOptions extends RedisConnection {
  /** The agent whose processes share events. */
  agentId: string
  /** Longer messages are replaced with a change notice. Default 64 KiB. */
  messageMaxChars?: number
}

/** Timeout for a subscription, after which the subscriber relies on reading the store. */
const subscribeTimeoutMs = 1000
const pingMs = 1000

/**
 * Notifies subscribers in all processes of an agent, using one channel per subscribed task. Subscribers in
 * this process are notified directly, without Redis. After a Redis outage, subscribers are notified to read
 * the store.
 * @throws Error when Redis is unreachable
 */
export async function openRedisEventBus(options: RedisEventBusOptions): Promise<EventBus> {
  const publisher = await connectRedis({ ...options, options: { enableAutoPipelining: true } })
  try {
    // Subscriptions during an outage are queued until the connection is restored.
    const subscriber = await connectRedis({ ...options, options: { enableOfflineQueue: true } })
    return new RedisEventBus(publisher, subscriber, options)
  } catch (error) {
    publisher.disconnect()
    throw error
  }
}

class RedisEventBus implements EventBus {
  readonly #publisher: Redis
  readonly #subscriber: Redis
  readonly #prefix: string
  readonly #maxChars: number
  /** Identifies this process, which ignores its own messages when Redis sends them back. */
  readonly #self = randomUUID()
  readonly #listeners = new Map<string, Set<Listener>>()

  constructor(publisher: Redis, subscriber: Redis, options: RedisEventBusOptions) {
    this.#publisher = publisher
    this.#subscriber = subscriber
    this.#prefix = `parley:{${options.agentId}}:task:`
    this.#maxChars = options.messageMaxChars ?? 64 * 1024
    subscriber.on('message', (channel: string, message: string) => this.#receive(channel, message))
    subscriber.on('ready', () => {
      for (const taskId of this.#listeners.keys()) this.#notify(taskId, [{ kind: 'changed' }])
    })
  }

  async ping(): Promise<void> {
    await within(pingMs, Promise.all([this.#publisher.ping(), this.#subscriber.ping()]))
  }

  publish(taskId: string, items: readonly LiveItem[]): void {
    this.#notify(taskId, items)
    const whole = JSON.stringify({ from: this.#self, items })
    const message =
      whole.length <= this.#maxChars
        ? whole
        : JSON.stringify({ from: this.#self, items: [{ kind: 'changed' }] })
    // A lost message only causes a delay, because subscribers read the store every two seconds.
    this.#publisher.publish(this.#prefix + taskId, message).catch(() => {})
  }

  subscribe(taskId: string, listener: Listener): Subscription {
    const listeners = this.#listeners.get(taskId) ?? new Set()
    this.#listeners.set(taskId, listeners)
    listeners.add(listener)
    // Further listeners also wait, because the first subscription may still be pending.
    const ready = this.#subscribed(taskId)
    return { ready, [Symbol.dispose]: () => this.#unsubscribe(taskId, listener) }
  }

  async #subscribed(taskId: string): Promise<void> {
    try {
      await within(subscribeTimeoutMs, this.#subscriber.subscribe(this.#prefix + taskId))
    } catch {
      // The client subscribes after it reconnects. Until then, subscribers read the store.
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listeners.clear()
    this.#publisher.disconnect()
    this.#subscriber.disconnect()
  }

  #unsubscribe(taskId: string, listener: Listener): void {
    const listeners = this.#listeners.get(taskId)
    if (listeners?.delete(listener) !== true || listeners.size > 0) return
    this.#listeners.delete(taskId)
    this.#subscriber.unsubscribe(this.#prefix + taskId).catch(() => {})
  }

  #receive(channel: string, message: string): void {
    const { from, items }: { from: string; items: BusMessage[] } = JSON.parse(message)
    if (from !== this.#self) this.#notify(channel.slice(this.#prefix.length), items)
  }

  #notify(taskId: string, items: readonly BusMessage[]): void {
    const listeners = this.#listeners.get(taskId)
    if (listeners === undefined) return
    for (const item of items) for (const listener of listeners) listener(item)
  }
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`no response within ${ms} ms`)), ms)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
