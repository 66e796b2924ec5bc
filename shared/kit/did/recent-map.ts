/** A map with a maximum size that drops the least recently used entry. */
export class RecentMap<Key, Value> {
  readonly #max: number
  readonly #entries = new Map<Key, Value>()

  constructor(max: number) {
    this.#max = max
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key)
    if (value === undefined) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, value)
    return value
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size <= this.#max) return
    const oldest = this.#entries.keys().next()
    if (oldest.done === false) this.#entries.delete(oldest.value)
  }

  delete(key: Key): void {
    this.#entries.delete(key)
  }
}
