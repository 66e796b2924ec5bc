/** How many places each owner holds. */
export class OwnerCounts {
  readonly #counts = new Map<string, number>()
  #total = 0

  get total(): number {
    return this.#total
  }

  of(owner: string): number {
    return this.#counts.get(owner) ?? 0
  }

  /** One more. The function gives it back, once. */
  hold(owner: string): () => void {
    this.#counts.set(owner, this.of(owner) + 1)
    this.#total += 1
    let held = true
    return () => {
      if (!held) return
      held = false
      this.#total -= 1
      const left = this.of(owner) - 1
      if (left === 0) this.#counts.delete(owner)
      else this.#counts.set(owner, left)
    }
  }
}
