import { setTimeout as pause } from 'node:timers/promises'
import type { OpenPushConfig } from '../store/webhook-store.ts'
import type { CapacityLimit, QueueCapacity } from './queue-capacity.ts'

/**
 * Tracks stored configs that have no queue in memory because of a limit. The configs are in the store, so
 * only their existence is tracked. All open configs are scanned once there is capacity.
 */
export class DeferredConfigs {
  readonly #open: () => AsyncIterable<OpenPushConfig>
  readonly #wake: (config: OpenPushConfig) => void
  readonly #capacity: Pick<QueueCapacity, 'hasRoom'>
  /** The exceeded limits by name. */
  readonly #exceeded = new Map<string, CapacityLimit>()
  #scanRequested = false
  #count = 0
  #scanning = false
  #stopped = false

  /** Creates an empty set. @param parts.wake may call `add` again if a limit is still exceeded */
  constructor(parts: {
    open: () => AsyncIterable<OpenPushConfig>
    wake: (config: OpenPushConfig) => void
    capacity: Pick<QueueCapacity, 'hasRoom'>
  }) {
    this.#open = parts.open
    this.#wake = parts.wake
    this.#capacity = parts.capacity
  }

  /** The approximate number of deferred configs. */
  get count(): number {
    return this.#count
  }

  /** Records a deferred config. @param limit the exceeded limit */
  add(limit: CapacityLimit): void {
    this.#count += 1
    this.#exceeded.set(limit.name, limit)
  }

  /** Requests a scan for configs that were not announced. */
  requestScan(): void {
    this.#scanRequested = true
  }

  /** Stops scanning. */
  stop(): void {
    this.#stopped = true
  }

  /** Whether a scan should start now. */
  get shouldScan(): boolean {
    return !this.#scanning && !this.#stopped && this.#capacity.hasRoom() && this.#hasWork()
  }

  /** Wakes as many open configs as capacity allows. */
  async scan(): Promise<void> {
    this.#scanning = true
    try {
      do {
        this.#scanRequested = false
        this.#exceeded.clear()
        this.#count = 0
        for await (const config of this.#open()) {
          while (!this.#capacity.hasRoom() && !this.#stopped) await pause(50)
          if (this.#stopped) return
          this.#wake(config)
        }
        // Capacity may have become available during the scan.
      } while (!this.#stopped && this.#hasWork())
    } finally {
      this.#scanning = false
    }
  }

  #hasWork(): boolean {
    return this.#scanRequested || [...this.#exceeded.values()].some((limit) => limit.hasRoom())
  }
}
