import type { DeliveryQueues } from './delivery-queue.ts'

/** A limit on queues in memory, which applies in total, to one host or to one owner. */
export interface CapacityLimit {
  name: string
  /** Whether enough capacity is free to load deferred configs. */
  hasRoom: () => boolean
}

/**
 * Limits the queues in memory for stored configs, so that no backlog uses all of the capacity. An owner may
 * have as many queues as are still free, a host a fifth of the total, and a failing or new host a fiftieth.
 */
export class QueueCapacity {
  readonly #queues: DeliveryQueues
  readonly #max: number
  readonly #isHealthy: (host: string) => boolean
  readonly #all: CapacityLimit = { name: 'all', hasRoom: () => this.#queues.stored < this.#max / 2 }

  constructor(queues: DeliveryQueues, queuesMax: number, isHealthy: (host: string) => boolean) {
    this.#queues = queues
    this.#max = queuesMax
    this.#isHealthy = isHealthy
  }

  hasRoom(): boolean {
    return this.#all.hasRoom()
  }

  /** Returns the limit that prevents another queue for this owner and host, or undefined if there is capacity. */
  exceededLimit(host: string, owner: string): CapacityLimit | undefined {
    const queues = this.#queues
    if (queues.stored >= this.#max) return this.#all
    if (queues.storedOf(owner) >= this.#free())
      return { name: `owner ${owner}`, hasRoom: () => queues.storedOf(owner) < this.#free() / 2 }
    if (queues.storedAt(host) >= this.#hostMax(host))
      return { name: `host ${host}`, hasRoom: () => queues.storedAt(host) < this.#hostMax(host) / 2 }
    return undefined
  }

  #free(): number {
    return this.#max - this.#queues.stored
  }

  #hostMax(host: string): number {
    return Math.ceil(this.#max * (this.#isHealthy(host) ? 1 / 5 : 1 / 50))
  }
}
