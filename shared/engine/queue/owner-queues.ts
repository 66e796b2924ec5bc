/** Keeps one queue per owner and serves the queues round-robin. The items of one owner stay in order. */
export class OwnerQueues<T> {
  /** The queues in the order of turns. After its turn, an owner moves to the end. */
  readonly #queues = new Map<string, Map<unknown, T>>()
  readonly #identify: (item: T) => { owner: string; key: unknown }
  #size = 0

  /**
   * Creates empty queues. @param identify returns an item's owner, and a key that is unique among that
   * owner's items
   */
  constructor(identify: (item: T) => { owner: string; key: unknown }) {
    this.#identify = identify
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

  /** Returns the owners with waiting items, starting with the next one. */
  owners(): Iterable<string> {
    return this.#queues.keys()
  }

  add(item: T): void {
    const { owner, key } = this.#identify(item)
    const queue = this.#queues.get(owner) ?? new Map<unknown, T>()
    this.#queues.set(owner, queue)
    if (!queue.has(key)) this.#size += 1
    queue.set(key, item)
  }

  /**
   * Removes and returns the first item of the next owner.
   * @param mayTake returns false to skip an owner, which keeps its turn
   */
  take(mayTake: (owner: string) => boolean = () => true): T | undefined {
    for (const owner of this.#queues.keys()) if (mayTake(owner)) return this.takeOf(owner)
    return undefined
  }

  /** Removes and returns the first item of this owner, and moves the owner to the end. */
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

  /** Removes the item. Returns false if it is not waiting. */
  remove(item: T): boolean {
    const { owner, key } = this.#identify(item)
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
