import type { Log } from '@parley/kit/process/log'

export interface StateCountsOptions {
  /** Updates the metrics from the store. */
  count: () => Promise<void>
  log: Log
  /** How long counts are cached. Default 5 s, or longer if counting is slow. */
  cacheMs?: number
  /** How long a reader of the metrics waits for new counts. Default 2 s. */
  waitMs?: number
}

/** Limits counting to one twentieth of the time. */
const restFactor = 20

/**
 * Provides task counts for the metrics of agents with several processes, in which no process can count by
 * itself. Readers receive counts from the store that are a few seconds old. If the store does not respond,
 * the metrics remain unchanged.
 */
export class StateCounts {
  readonly #options: StateCountsOptions
  #validUntil: number
  #counting: Promise<void> | undefined

  /** Assumes that the counts have just been updated. */
  constructor(options: StateCountsOptions) {
    this.#options = options
    this.#validUntil = performance.now() + this.#cacheMs
  }

  /** Updates the counts if they are outdated. Never rejects. */
  async refresh(): Promise<void> {
    if (performance.now() < this.#validUntil) return
    this.#counting ??= this.#count()
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, this.#options.waitMs ?? 2000)
    await Promise.race([this.#counting, promise])
    clearTimeout(timer)
  }

  async #count(): Promise<void> {
    const startedAt = performance.now()
    try {
      await this.#options.count()
    } catch (error) {
      this.#options.log.warn({ err: error }, 'could not count tasks')
    }
    const now = performance.now()
    this.#validUntil = now + Math.max(this.#cacheMs, restFactor * (now - startedAt))
    this.#counting = undefined
  }

  get #cacheMs(): number {
    return this.#options.cacheMs ?? 5000
  }
}
