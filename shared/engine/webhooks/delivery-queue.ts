import type { TaskRecord } from '../store/store.ts'
import type { TaskKey } from '../store/webhook-store.ts'
import type { PreparedEvent } from './prepare-events.ts'

/**
 * A task's ordered events for one receiver, delivered one at a time. The queue exists while there are events
 * to deliver. It holds sequence numbers, and only the next events are loaded.
 */
export interface DeliveryQueue {
  key: string
  task: TaskKey
  /** Undefined for the global webhook. */
  configId: string | undefined
  /** The receiver's URL when the config was last read, and its host. */
  url: string
  host: string
  /** The sequence numbers of the last settled event and of the newest event. */
  settled: number
  newest: number
  /** `running`: the queue is being loaded or delivered. `changed`: it changed in the meantime. */
  running: boolean
  changed: boolean
  /** Whether the next event is large and waits for free bytes. */
  isLarge: boolean
  /** Whether the queue belongs to a stored config, which a restart can continue. */
  stored: boolean
  batch: PreparedEvent[]
  /** The record of the commit that woke the queue. It is released when the queue's events are loaded. */
  record: TaskRecord | undefined
  /** The revision of the config for which the batch was loaded. */
  revision: string
  /** Aborts the current delivery. */
  abort: AbortController
}

export function queueKey(task: TaskKey, configId: string | undefined): string {
  return `${task.id} ${task.createdAt} ${configId ?? ''}`
}

export function hostOf(url: string): string {
  return URL.parse(url)?.host ?? ''
}

/** All queues, and the number of events in them. */
export class DeliveryQueues {
  readonly #queues = new Map<string, DeliveryQueue>()
  /** The number of queues for stored configs, by host. */
  readonly #storedAt = new Map<string, number>()
  readonly #storedOf = new Map<string, number>()
  #stored = 0
  #global = 0
  #queued = 0

  /** The number of queues for stored configs. */
  get stored(): number {
    return this.#stored
  }

  /** Returns the number of queues for stored configs on the host. */
  storedAt(host: string): number {
    return this.#storedAt.get(host) ?? 0
  }

  /** Returns the number of queues for stored configs on the owner's tasks. */
  storedOf(owner: string): number {
    return this.#storedOf.get(owner) ?? 0
  }

  /** The number of queues for the global webhook. */
  get global(): number {
    return this.#global
  }

  /** The number of events that have not been settled. */
  get queued(): number {
    return this.#queued
  }

  get(key: string): DeliveryQueue | undefined {
    return this.#queues.get(key)
  }

  values(): Iterable<DeliveryQueue> {
    return this.#queues.values()
  }

  add(queue: DeliveryQueue): void {
    this.#queues.set(queue.key, queue)
    this.#queued += queue.newest - queue.settled
    this.#count(queue, 1)
  }

  remove(queue: DeliveryQueue): void {
    if (this.#queues.get(queue.key) !== queue) return
    this.#queues.delete(queue.key)
    this.#queued -= queue.newest - queue.settled
    this.#count(queue, -1)
  }

  /** Changes the queue's receiver. */
  redirect(queue: DeliveryQueue, url: string): void {
    const isRegistered = this.#queues.get(queue.key) === queue
    if (isRegistered) this.#count(queue, -1)
    queue.url = url
    queue.host = hostOf(url)
    if (isRegistered) this.#count(queue, 1)
  }

  /** Updates the progress. `settled` may decrease if the config was replaced. */
  advance(queue: DeliveryQueue, to: { settled?: number; newest?: number }): void {
    const before = queue.newest - queue.settled
    queue.settled = to.settled ?? queue.settled
    queue.newest = Math.max(queue.newest, to.newest ?? 0, queue.settled)
    if (this.#queues.get(queue.key) === queue) this.#queued += queue.newest - queue.settled - before
  }

  #count({ stored, configId, host, task }: DeliveryQueue, by: 1 | -1): void {
    if (configId === undefined) this.#global += by
    if (!stored) return
    this.#stored += by
    addTo(this.#storedAt, host, by)
    addTo(this.#storedOf, task.owner, by)
  }
}

function addTo(counts: Map<string, number>, key: string, by: number): void {
  const sum = (counts.get(key) ?? 0) + by
  if (sum > 0) counts.set(key, sum)
  else counts.delete(key)
}
