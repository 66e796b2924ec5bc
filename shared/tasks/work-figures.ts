/** How many of the newest runs the percentiles look at. */
const newestRuns = 256

/** What an agent tells its gateway of its work: counts, and how long the newest runs took. */
export class WorkFigures {
  readonly #latencies: number[] = []
  #next = 0
  completed = 0
  failed = 0

  ended(outcome: 'completed' | 'failed', latencyMs: number): void {
    this[outcome] += 1
    this.#latencies[this.#next] = latencyMs
    this.#next = (this.#next + 1) % newestRuns
  }

  /** Milliseconds; undefined while nothing has run. */
  percentile(share: number): number | undefined {
    const sorted = this.#latencies.toSorted((a, b) => a - b)
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
  }
}
