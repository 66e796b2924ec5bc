import type { TaskOutcome } from '@parley/wire/model/registry'

/** How many of the newest runs the percentiles look at. */
const newestRuns = 256
const outcomesMax = 500

interface Outcome {
  taskId: string
  state: 'completed' | 'failed'
  rating?: number
  at: number
}

/** What an agent tells its gateway of its work: counts, and how long the newest runs took. */
export class WorkStats {
  readonly #latencies: number[] = []
  readonly #outcomes: Outcome[] = []
  #next = 0
  completed = 0
  failed = 0

  ended(outcome: 'completed' | 'failed', latencyMs: number, taskId: string): void {
    this.#note({ taskId, state: outcome, at: Date.now() })
    this[outcome] += 1
    this.#latencies[this.#next] = latencyMs
    this.#next = (this.#next + 1) % newestRuns
  }

  /** The owner of a completed task rated it, 1 to 5. */
  rated(taskId: string, rating: number): void {
    this.#note({ taskId, state: 'completed', rating, at: Date.now() })
  }

  /** How tasks ended or were rated after that moment (milliseconds since 1970), in order; the newest 500. */
  outcomesSince(moment: number): TaskOutcome[] {
    return this.#outcomes
      .slice(-outcomesMax)
      .filter(({ at }) => at > moment)
      .map(({ taskId, state, rating }) => ({ taskId, state, ...(rating && { rating }) }))
  }

  #note(outcome: Outcome): void {
    this.#outcomes.push(outcome)
    if (this.#outcomes.length > 2 * outcomesMax) this.#outcomes.splice(0, this.#outcomes.length - outcomesMax)
  }

  /** Milliseconds; undefined while nothing has run. */
  percentile(share: number): number | undefined {
    const sorted = this.#latencies.toSorted((a, b) => a - b)
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
  }
}
