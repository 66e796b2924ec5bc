/** A provider that is down is left alone for so long. */
const restMs = 1000

/** Leaves alone who could not be reached: for a second every question fails at once, as the last one did. */
export class Rest {
  #down: { error: unknown; until: number } | undefined

  /** What `reach` gives; that it gives something ends the rest. */
  async outside<T>(reach: () => Promise<T>): Promise<T> {
    if (this.#down !== undefined && this.#down.until > performance.now()) throw this.#down.error
    try {
      const reached = await reach()
      this.#down = undefined
      return reached
    } catch (error) {
      this.#down = { error, until: performance.now() + restMs }
      throw error
    }
  }
}
