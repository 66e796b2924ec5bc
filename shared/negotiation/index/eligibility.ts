import { brokenByFacts, brokenBySkills } from '../score/constraints.ts'
import type { NegotiationRequest } from '../score/request.ts'
import type { Row, Rows, Shape } from './rows.ts'

export interface ExcludedAgent {
  id: string
  slug: string
  rule: string
  /** Whether the exclusion is expected to end soon. */
  temporary?: boolean
}

/**
 * Decides which rows are eligible for a request. Constraints that concern only skills are evaluated once per shape.
 */
export class Eligibility {
  readonly #request: NegotiationRequest
  readonly #ofShape = new Map<Shape, string | undefined>()
  readonly #byFacts: boolean
  readonly #evenAway: boolean
  #anyShape = false

  /** @param evenAway whether to treat temporarily excluded agents as eligible */
  constructor(rows: Rows, request: NegotiationRequest, evenAway = false) {
    this.#request = request
    this.#evenAway = evenAway
    this.#byFacts = request.maxCostAmount !== undefined || request.maxLatencyMs !== undefined
    for (const shape of rows.shapes()) {
      const broken = brokenBySkills(shape.skills, request)
      if (broken !== undefined) this.#anyShape = true
      this.#ofShape.set(shape, broken)
    }
  }

  /** Returns the rule that excludes the row, or undefined if the row is eligible. */
  rule(row: Row): string | undefined {
    if (row.rule !== undefined && !(this.#evenAway && row.away === true)) return row.rule
    const broken = this.#anyShape ? this.#ofShape.get(row.shape) : undefined
    return broken ?? (this.#byFacts ? brokenByFacts(row.offer, this.#request) : undefined)
  }

  /**
   * The excluded agents sorted by slug, and their number. Iterates over all rows only if the request has hard
   * constraints.
   */
  excluded(rows: Rows, ruled: ReadonlySet<Row>, limit: number): { named: ExcludedAgent[]; total: number } {
    const named: ExcludedAgent[] = []
    let total = 0
    for (const row of this.#anyShape || this.#byFacts ? rows.ordered() : inOrder(rows, ruled)) {
      const rule = this.rule(row)
      if (rule === undefined) continue
      total += 1
      if (named.length < limit)
        named.push({ id: row.id, slug: row.slug, rule, ...(row.away === true && { temporary: true }) })
    }
    return { named, total }
  }
}

function inOrder(rows: Rows, ruled: ReadonlySet<Row>): Iterable<Row> {
  if (ruled.size > rows.size / 8) return rows.ordered()
  return [...ruled].sort((a, b) => (a.slug < b.slug ? -1 : 1))
}
