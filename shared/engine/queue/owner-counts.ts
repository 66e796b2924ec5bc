/** Counts the reserved places of each owner. */
export class OwnerCounts {
  readonly #counts = new Map<string, number>()
  #total = 0

  get total(): number {
    return this.#total
  }

  of(owner: string): number {
    return this.#counts.get(owner) ?? 0
  }

  /** Adds one place for the owner. The first call of the returned function removes it. */
  acquire(owner: string): () => void {
    this.#counts.set(owner, this.of(owner) + 1)
    this.#total += 1
    let acquired = true
    return () => {
      if (!acquired) return
      acquired = false
      this.#total -= 1
      const left = this.of(owner) - 1
      if (left === 0) this.#counts.delete(owner)
      else this.#counts.set(owner, left)
    }
  }
}
