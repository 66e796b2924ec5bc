import type { TaskOutcome } from '@parley/wire/model/registry'

/** The number of recent runs from which percentiles are computed. */
const recentRuns = 256
const outcomesMax = 500

interface Outcome {
  taskId: string
  state: 'completed' | 'failed'
  rating?: number
  at: number
}

/** The statistics that an agent reports to its gateway: counts, outcomes, and the latency of recent runs. */
export class WorkStats {
  readonly #latencies: number[] = []
  readonly #outcomes: Outcome[] = []
  #next = 0
  completed = 0
  failed = 0

  recordOutcome(outcome: 'completed' | 'failed', latencyMs: number, taskId: string): void {
    this.#add({ taskId, state: outcome, at: Date.now() })
    this[outcome] += 1
    this.#latencies[this.#next] = latencyMs
    this.#next = (this.#next + 1) % recentRuns
  }

  /** Records the owner's rating of a completed task, from 1 to 5. */
  recordRating(taskId: string, rating: number): void {
    this.#add({ taskId, state: 'completed', rating, at: Date.now() })
  }

  /** Returns the latest outcomes and ratings since a time (milliseconds since 1970), oldest first and at most 500. */
  outcomesSince(moment: number): TaskOutcome[] {
    return this.#outcomes
      .slice(-outcomesMax)
      .filter(({ at }) => at > moment)
      .map(({ taskId, state, rating }) => ({ taskId, state, ...(rating && { rating }) }))
  }

  #add(outcome: Outcome): void {
    this.#outcomes.push(outcome)
    if (this.#outcomes.length > 2 * outcomesMax) this.#outcomes.splice(0, this.#outcomes.length - outcomesMax)
  }

  /** Returns the latency in milliseconds, or undefined before the first run. */
  percentile(share: number): number | undefined {
    const sorted = this.#latencies.toSorted((a, b) => a - b)
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
  }
}
