import type { Log } from '@parley/kit/process/log'

export interface StateCountsOptions {
  /** Reads the counts of the store into the series. */
  count: () => Promise<void>
  log: Log
  /** How long counts are good. Default 5 s; longer where the store takes long to count. */
  goodForMs?: number
  /** How long a reader of the series waits for new counts. Default 2 s. */
  waitMs?: number
}

/** Counting may take this share of the time at most. */
const timesAsLong = 20

/**
 * Where several processes change an agent's tasks, none of them can count by itself: whoever reads the series has what the
 * store said a few seconds ago. A store that does not answer leaves the series as they are.
 */
export class StateCounts {
  readonly #options: StateCountsOptions
  #goodUntil: number
  #counting: Promise<void> | undefined

  /** They have just been counted. */
  constructor(options: StateCountsOptions) {
    this.#options = options
    this.#goodUntil = performance.now() + this.#goodForMs
  }

  /** Never rejects. */
  async refresh(): Promise<void> {
    if (performance.now() < this.#goodUntil) return
    this.#counting ??= this.#count()
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, this.#options.waitMs ?? 2000)
    await Promise.race([this.#counting, promise])
    clearTimeout(timer)
  }

  async #count(): Promise<void> {
    const began = performance.now()
    try {
      await this.#options.count()
    } catch (error) {
      this.#options.log.warn({ err: error }, 'tasks could not be counted')
    }
    const now = performance.now()
    this.#goodUntil = now + Math.max(this.#goodForMs, timesAsLong * (now - began))
    this.#counting = undefined
  }

  get #goodForMs(): number {
    return this.#options.goodForMs ?? 5000
  }
}
