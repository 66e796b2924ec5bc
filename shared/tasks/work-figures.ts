/** How many of the newest runs the percentiles look at. */
const newestRuns = 256
const outcomesMax = 500

/** What an agent tells its gateway of its work: counts, and how long the newest runs took. */
export class WorkFigures {
  readonly #latencies: number[] = []
  readonly #outcomes: { taskId: string; outcome: 'completed' | 'failed'; at: number }[] = []
  #next = 0
  completed = 0
  failed = 0

  ended(outcome: 'completed' | 'failed', latencyMs: number, taskId: string): void {
    this.#outcomes.push({ taskId, outcome, at: Date.now() })
    if (this.#outcomes.length > 2 * outcomesMax) this.#outcomes.splice(0, this.#outcomes.length - outcomesMax)
    this[outcome] += 1
    this.#latencies[this.#next] = latencyMs
    this.#next = (this.#next + 1) % newestRuns
  }

  /** How the tasks ended that ended after that moment (milliseconds since 1970); the newest 500. */
  outcomesSince(moment: number): { task_id: string; state: 'completed' | 'failed' }[] {
    return this.#outcomes
      .slice(-outcomesMax)
      .filter(({ at }) => at > moment)
      .map(({ taskId, outcome }) => ({ task_id: taskId, state: outcome }))
  }

  /** Milliseconds; undefined while nothing has run. */
  percentile(share: number): number | undefined {
    const sorted = this.#latencies.toSorted((a, b) => a - b)
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
  }
}
