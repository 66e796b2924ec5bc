import { brokenByFacts, brokenBySkills } from '../score/constraints.ts'
import type { NegotiationRequest } from '../score/request.ts'
import type { Row, Rows, Shape } from './rows.ts'
import type { Visibility } from './visibility.ts'

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
  readonly #visibility: Visibility | undefined
  #anyShape = false

  /**
   * @param evenAway whether to treat temporarily excluded agents as eligible
   * @param visibility what the caller sees; by default, every agent
   */
  constructor(rows: Rows, request: NegotiationRequest, evenAway = false, visibility?: Visibility) {
    this.#request = request
    this.#evenAway = evenAway
    this.#visibility = visibility
    this.#byFacts = request.maxCostAmount !== undefined || request.maxLatencyMs !== undefined
    for (const shape of rows.shapes()) {
      const broken = brokenBySkills(shape.skills, request)
      if (broken !== undefined) this.#anyShape = true
      this.#ofShape.set(shape, broken)
    }
    for (const number of visibility?.limitedRows() ?? [])
      if (this.#brokenByLimit(rows.byNumber(number)) !== undefined) this.#anyShape = true
  }

  /** Returns the rule that excludes the row, or undefined if the row is eligible. */
  rule(row: Row): string | undefined {
    if (row.rule !== undefined && !(this.#evenAway && row.away === true)) return row.rule
    const isLimited = this.#visibility?.isLimited(row.number) === true
    const byShape = () => (isLimited ? this.#brokenByLimit(row) : this.#ofShape.get(row.shape))
    const broken = this.#anyShape ? byShape() : undefined
    return broken ?? (this.#byFacts ? brokenByFacts(row.offer, this.#request) : undefined)
  }

  /** Constraints on skills, evaluated with the skills that the caller sees. */
  #brokenByLimit(row: Row): string | undefined {
    return brokenBySkills(this.#visibility?.offerOf(row).skills ?? row.offer.skills, this.#request)
  }

  /**
   * The excluded agents sorted by slug, and their number. Iterates over all rows only if the request has hard
   * constraints.
   */
  excluded(rows: Rows, ruled: ReadonlySet<Row>, limit: number): { named: ExcludedAgent[]; total: number } {
    const named: ExcludedAgent[] = []
    let total = 0
    for (const row of this.#anyShape || this.#byFacts ? rows.ordered() : inOrder(rows, ruled)) {
      const rule = this.#visibility?.isHidden(row.number) === true ? undefined : this.rule(row)
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
