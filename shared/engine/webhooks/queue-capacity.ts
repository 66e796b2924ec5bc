import type { DeliveryQueues } from './delivery-queue.ts'

/** A limit on queues in memory: in total, of one host, or of one owner. */
export interface CapacityLimit {
  name: string
  /** Whether enough capacity is free to load deferred configs. */
  hasRoom: () => boolean
}

/**
 * Limits the queues of stored configs in memory, so that no backlog takes all the capacity. An owner may have
 * as many as are still free, a host a fifth of the total, a failing or new host a fiftieth.
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

  /** The limit that prevents another queue of this owner to the host; undefined when there is capacity. */
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
