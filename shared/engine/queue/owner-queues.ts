/** What waits, in turns over its owners; what one owner has, in the order in which it came. */
export class OwnerQueues<T> {
  /** Insertion order is the order of turns: the owner that was served last is the last one. */
  readonly #queues = new Map<string, Map<unknown, T>>()
  readonly #nameOf: (item: T) => { owner: string; key: unknown }
  #size = 0

  /** @param nameOf whose turn an item uses, and what tells it from the owner's others */
  constructor(nameOf: (item: T) => { owner: string; key: unknown }) {
    this.#nameOf = nameOf
  }

  get size(): number {
    return this.#size
  }

  sizeOf(owner: string): number {
    return this.#queues.get(owner)?.size ?? 0
  }

  *[Symbol.iterator](): Generator<T> {
    for (const queue of this.#queues.values()) yield* queue.values()
  }

  /** Those with something that waits, next first. */
  owners(): Iterable<string> {
    return this.#queues.keys()
  }

  add(item: T): void {
    const { owner, key } = this.#nameOf(item)
    const queue = this.#queues.get(owner) ?? new Map<unknown, T>()
    this.#queues.set(owner, queue)
    if (!queue.has(key)) this.#size += 1
    queue.set(key, item)
  }

  /** The first item of the owner whose turn it is. @param mayTake false: the owner is passed over and keeps its turn */
  take(mayTake: (owner: string) => boolean = () => true): T | undefined {
    for (const owner of this.#queues.keys()) if (mayTake(owner)) return this.takeOf(owner)
    return undefined
  }

  /** The first item of this owner, who comes after all others then. */
  takeOf(owner: string): T | undefined {
    const queue = this.#queues.get(owner)
    const [first] = queue ?? []
    if (queue === undefined || first === undefined) return undefined
    this.#queues.delete(owner)
    const [key, item] = first
    queue.delete(key)
    this.#size -= 1
    if (queue.size > 0) this.#queues.set(owner, queue)
    return item
  }

  /** False when it does not wait. */
  remove(item: T): boolean {
    const { owner, key } = this.#nameOf(item)
    const queue = this.#queues.get(owner)
    if (queue?.delete(key) !== true) return false
    this.#size -= 1
    if (queue.size === 0) this.#queues.delete(owner)
    return true
  }

  clear(): void {
    this.#queues.clear()
    this.#size = 0
  }
}
