/** A provider that is down is left alone for so long. */
const restMs = 1000

/**
 * Leaves alone who could not be reached: for a second every question fails at once, as the last one did; then one goes
 * out, and the others fail at once until it has its answer.
 */
export class Rest {
  #down: { error: unknown; until: number; isTried: boolean } | undefined

  /** What `reach` gives; that it gives something ends the rest. */
  async outside<T>(reach: () => Promise<T>): Promise<T> {
    const down = this.#down
    if (down !== undefined) {
      if (down.isTried || down.until > performance.now()) throw down.error
      down.isTried = true
    }
    try {
      const reached = await reach()
      this.#down = undefined
      return reached
    } catch (error) {
      this.#down = { error, until: performance.now() + restMs, isTried: false }
      throw error
    }
  }
}
