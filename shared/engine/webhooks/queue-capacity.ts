import type { DeliveryQueues } from './delivery-queue.ts'

/** Of the room in memory: all of it, or what one host or one owner may have. */
export interface CapacityLimit {
  name: string
  /** So much that it is worth looking for what found none. */
  hasRoomAgain: () => boolean
}

/**
 * How many lanes of stored configs are kept in memory: no owner's backlog may take the room that others need. An owner may have as
 * many as are still free, one host a fifth of all, one whose last delivery failed a fiftieth.
 */
export class QueueCapacity {
  readonly #lanes: DeliveryQueues
  readonly #max: number
  readonly #isWell: (host: string) => boolean
  readonly #all: CapacityLimit = { name: 'all', hasRoomAgain: () => this.#lanes.stored < this.#max / 2 }

  constructor(lanes: DeliveryQueues, lanesMax: number, isWell: (host: string) => boolean) {
    this.#lanes = lanes
    this.#max = lanesMax
    this.#isWell = isWell
  }

  hasRoomAgain(): boolean {
    return this.#all.hasRoomAgain()
  }

  /** What is full, so that this owner's lane to the host finds no room; undefined where it finds room. */
  full(host: string, owner: string): CapacityLimit | undefined {
    const lanes = this.#lanes
    if (lanes.stored >= this.#max) return this.#all
    if (lanes.storedOf(owner) >= this.#free())
      return { name: `owner ${owner}`, hasRoomAgain: () => lanes.storedOf(owner) < this.#free() / 2 }
    if (lanes.storedAt(host) >= this.#maxAt(host))
      return { name: `host ${host}`, hasRoomAgain: () => lanes.storedAt(host) < this.#maxAt(host) / 2 }
    return undefined
  }

  #free(): number {
    return this.#max - this.#lanes.stored
  }

  #maxAt(host: string): number {
    return Math.ceil(this.#max * (this.#isWell(host) ? 1 / 5 : 1 / 50))
  }
}
