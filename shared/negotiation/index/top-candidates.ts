/** A row among the best so far. */
export interface ScoredRow {
  row: number
  slug: string
  score: number
}

export class TopCandidates {
  readonly #limit: number
  readonly #scored: ScoredRow[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  /** The rows, best first. */
  get scored(): readonly ScoredRow[] {
    return this.#scored
  }

  /** The last candidate if all places are taken. */
  get last(): ScoredRow | undefined {
    return this.#scored.length < this.#limit ? undefined : this.#scored[this.#limit - 1]
  }

  /** Whether a row with this score would be among the candidates. */
  takes(score: number, slug: string): boolean {
    if (this.#limit === 0) return false
    const { last } = this
    return last === undefined || score > last.score || (score === last.score && slug < last.slug)
  }

  put(scored: ScoredRow): void {
    let at = this.#scored.length
    while (at > 0 && isBefore(scored, this.#scored[at - 1] as ScoredRow)) at -= 1
    this.#scored.splice(at, 0, scored)
    if (this.#scored.length > this.#limit) this.#scored.pop()
  }
}

const isBefore = (a: ScoredRow, b: ScoredRow) => a.score > b.score || (a.score === b.score && a.slug < b.slug)

/** The rows with the highest bounds, best first. */
export function mostPromising(bounds: Float64Array, count: number): number[] {
  const rows: number[] = []
  const most: number[] = []
  let least = Number.NEGATIVE_INFINITY
  for (let row = 0; row < bounds.length; row += 1) {
    const bound = bounds[row] ?? 0
    if (bound <= least) continue
    let at = Math.min(rows.length, count - 1)
    for (; at > 0 && (most[at - 1] ?? 0) < bound; at -= 1) {
      most[at] = most[at - 1] ?? 0
      rows[at] = rows[at - 1] ?? 0
    }
    most[at] = bound
    rows[at] = row
    if (rows.length === count) least = most[count - 1] ?? 0
  }
  return rows
}
