import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '@parley/kit/process/log'
import type { DeliveryQueue } from './delivery-queue.ts'
import type { Registrations } from './registrations.ts'

interface Parts {
  registrations: Registrations
  log: Log
  /** Duration of a lease that is not renewed. Default 6 s. */
  leaseMs?: number
}

/** Timeout for releasing leases at shutdown. Leases that are not released by then expire. */
const releaseTimeoutMs = 1000

/**
 * Leases on delivery queues for agents with several processes. Only the holder delivers the events for a task
 * and config, which keeps them in order. A lease is renewed while its queue is active, and expires if its
 * process dies. A process that was suspended notices by its clock that a lease may have expired, and confirms
 * the lease before it sends anything.
 */
export class DeliveryLeases {
  readonly sender = randomUUID()
  readonly #registrations: Registrations
  readonly #log: Log
  readonly #leaseMs: number
  /** The time at which each lease was last acquired or renewed, measured by a monotonic clock. */
  readonly #held = new Map<DeliveryQueue, number>()
  #timer: NodeJS.Timeout | undefined

  constructor({ registrations, log, leaseMs = 6000 }: Parts) {
    this.#registrations = registrations
    this.#log = log
    this.#leaseMs = leaseMs
  }

  /** Whether this process holds the lease, or has just lost it and still has to release it. */
  isHeld(queue: DeliveryQueue): boolean {
    return this.#held.has(queue)
  }

  /**
   * Acquires the lease. Returns false if the config no longer exists, or if another process holds the lease.
   * In the latter case, that process is signaled to check for new events.
   * @throws ParleyError Unavailable
   */
  async acquire(queue: DeliveryQueue): Promise<boolean> {
    if (!this.#registrations.shared || queue.configId === undefined || this.#isFresh(queue)) return true
    const at = performance.now()
    const key = { task: queue.task, id: queue.configId }
    const result = await this.#registrations.claim(key, this.sender, this.#leaseMs)
    if (result !== 'ours') {
      this.#held.delete(queue)
      return false
    }
    this.#held.set(queue, at)
    this.#timer ??= setInterval(() => this.#renew(), this.#leaseMs / 3).unref()
    return true
  }

  /**
   * Renews the lease if it may have expired. Call it before each attempt. Returns false if another process
   * may have sent the event since then. Never rejects.
   */
  async confirm(queue: DeliveryQueue): Promise<boolean> {
    if (!this.#registrations.shared || queue.configId === undefined || this.#isFresh(queue)) return true
    const at = performance.now()
    const key = { task: queue.task, id: queue.configId }
    try {
      if (await this.#registrations.renew(key, this.sender, this.#leaseMs)) {
        this.#held.set(queue, at)
        return true
      }
    } catch (error) {
      this.#log.warn({ err: error, task_id: queue.task.id }, 'could not renew a webhook lease')
    }
    this.#held.delete(queue)
    return false
  }

  /** Forgets a lease after the store has rejected an update of its queue. */
  forget(queue: DeliveryQueue): void {
    this.#held.delete(queue)
  }

  /**
   * Releases the lease. Returns false and keeps the lease if other processes signaled new events in the
   * meantime. Never rejects.
   */
  async release(queue: DeliveryQueue): Promise<boolean> {
    const key = { task: queue.task, id: queue.configId ?? '' }
    try {
      if (!(await this.#registrations.release(key, this.sender))) return false
    } catch (error) {
      this.#log.debug(
        { err: error, task_id: queue.task.id },
        'a webhook lease was not released and will expire',
      )
    }
    this.#held.delete(queue)
    return true
  }

  /** Releases all leases at shutdown, so that other processes can continue immediately. */
  async releaseAll(): Promise<void> {
    clearInterval(this.#timer)
    const all = Promise.all([...this.#held.keys()].map((queue) => this.release(queue)))
    await Promise.race([all, pause(releaseTimeoutMs, undefined, { ref: false })])
  }

  #isFresh(queue: DeliveryQueue): boolean {
    const at = this.#held.get(queue)
    return at !== undefined && performance.now() - at < this.#leaseMs / 2
  }

  #renew(): void {
    for (const [queue, at] of this.#held)
      if (queue.running && performance.now() - at >= this.#leaseMs / 4) void this.#renewOne(queue)
  }

  /** Renews the lease, and aborts the current delivery if the lease is lost. */
  async #renewOne(queue: DeliveryQueue): Promise<void> {
    this.#held.set(queue, Number.NEGATIVE_INFINITY)
    if (await this.confirm(queue)) return
    queue.abort.abort()
    queue.abort = new AbortController()
  }
}
