export interface BackoffOptions {
  /** The first delay. Defaults to 0.5 s. */
  firstMs?: number
  /** The longest delay. Defaults to 30 s. */
  longestMs?: number
  /** A run of at least this length resets the delay. Defaults to 60 s. */
  resetAfterMs?: number
}

/** An exponentially growing delay between restarts. */
export class Backoff {
  readonly #options: Required<BackoffOptions>
  #failures = 0

  constructor(options: BackoffOptions = {}) {
    this.#options = { firstMs: 500, longestMs: 30_000, resetAfterMs: 60_000, ...options }
  }

  /** The number of runs that ended since the last long one. */
  get failures(): number {
    return this.#failures
  }

  isLong(ranMs: number): boolean {
    return ranMs >= this.#options.resetAfterMs
  }

  next(ranMs: number): number {
    const { firstMs, longestMs } = this.#options
    if (this.isLong(ranMs)) this.#failures = 0
    return Math.min(firstMs * 2 ** Math.min(this.#failures++, 30), longestMs)
  }
}
