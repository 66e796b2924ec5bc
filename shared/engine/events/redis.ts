import { randomUUID } from 'node:crypto'
import { connectRedis, type RedisConnection } from '@parley/kit/process/redis'
import type { Redis } from 'ioredis'
import type { BusMessage, EventBus, LiveItem, Subscription } from './event-bus.ts'

type Listener = (item: BusMessage) => void

export interface RedisEventBusOptions extends RedisConnection {
  /** Whose tasks these are: buses with the same name hear each other. */
  agentId: string
  /** Items that make a longer message are not told, only that there is something. Default 64 KiB. */
  messageMaxChars?: number
}

/** Longest wait for the word that a subscription holds; a follower asks the store again anyway. */
const readyMaxMs = 1000
const pingMs = 1000

/**
 * Tells the followers in every process of an agent, by a channel for each task that somebody follows. Those of this process
 * hear at once, whatever Redis does. What is lost while Redis is away is made good: followers are told to ask the store.
 * @throws Error when no Redis answers
 */
export async function openRedisEventBus(options: RedisEventBusOptions): Promise<EventBus> {
  const publisher = await connectRedis({ ...options, options: { enableAutoPipelining: true } })
  try {
    // Subscriptions that are asked for while the connection is away are made when it is back.
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
  /** Ours are heard without Redis, so what comes back of them is left out. */
  readonly #self = randomUUID()
  readonly #listeners = new Map<string, Set<Listener>>()

  constructor(publisher: Redis, subscriber: Redis, options: RedisEventBusOptions) {
    this.#publisher = publisher
    this.#subscriber = subscriber
    this.#prefix = `parley:{${options.agentId}}:task:`
    this.#maxChars = options.messageMaxChars ?? 64 * 1024
    subscriber.on('message', (channel: string, message: string) => this.#arrived(channel, message))
    subscriber.on('ready', () => {
      for (const taskId of this.#listeners.keys()) this.#tell(taskId, [{ kind: 'changed' }])
    })
  }

  async ping(): Promise<void> {
    await within(pingMs, Promise.all([this.#publisher.ping(), this.#subscriber.ping()]))
  }

  publish(taskId: string, items: readonly LiveItem[]): void {
    this.#tell(taskId, items)
    const whole = JSON.stringify({ from: this.#self, items })
    const message =
      whole.length <= this.#maxChars
        ? whole
        : JSON.stringify({ from: this.#self, items: [{ kind: 'changed' }] })
    // A hint that is lost is a delay: followers ask the store every two seconds.
    this.#publisher.publish(this.#prefix + taskId, message).catch(() => {})
  }

  subscribe(taskId: string, listener: Listener): Subscription {
    const listeners = this.#listeners.get(taskId) ?? new Set()
    this.#listeners.set(taskId, listeners)
    listeners.add(listener)
    // Also where somebody listens already: that subscription may still be on its way.
    const ready = this.#holds(taskId)
    return { ready, [Symbol.dispose]: () => this.#leave(taskId, listener) }
  }

  async #holds(taskId: string): Promise<void> {
    try {
      await within(readyMaxMs, this.#subscriber.subscribe(this.#prefix + taskId))
    } catch {
      // Made when the connection is back; until then followers ask the store.
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listeners.clear()
    this.#publisher.disconnect()
    this.#subscriber.disconnect()
  }

  #leave(taskId: string, listener: Listener): void {
    const listeners = this.#listeners.get(taskId)
    if (listeners?.delete(listener) !== true || listeners.size > 0) return
    this.#listeners.delete(taskId)
    this.#subscriber.unsubscribe(this.#prefix + taskId).catch(() => {})
  }

  #arrived(channel: string, message: string): void {
    const { from, items } = JSON.parse(message) as { from: string; items: BusMessage[] }
    if (from !== this.#self) this.#tell(channel.slice(this.#prefix.length), items)
  }

  #tell(taskId: string, items: readonly BusMessage[]): void {
    const listeners = this.#listeners.get(taskId)
    if (listeners === undefined) return
    for (const item of items) for (const listener of listeners) listener(item)
  }
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
