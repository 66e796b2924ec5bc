import { brokenByFacts, brokenBySkills } from '../score/constraints.ts'
import type { NegotiationRequest } from '../score/request.ts'
import type { Row, Rows, Shape } from './rows.ts'

export interface ExcludedAgent {
  id: string
  slug: string
  rule: string
  /** The rule is expected to end by itself soon. */
  temporary?: boolean
}

/** Says of every row whether it can be a candidate for the request. What skills alone decide is decided once a shape. */
export class Eligibility {
  readonly #request: NegotiationRequest
  readonly #ofShape = new Map<Shape, string | undefined>()
  readonly #byFacts: boolean
  readonly #evenAway: boolean
  #anyShape = false

  /** @param evenAway agents whose rule is temporary count as candidates */
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

  /** The rule that excludes the row; undefined: it is a candidate. */
  rule(row: Row): string | undefined {
    if (row.rule !== undefined && !(this.#evenAway && row.away === true)) return row.rule
    const broken = this.#anyShape ? this.#ofShape.get(row.shape) : undefined
    return broken ?? (this.#byFacts ? brokenByFacts(row.offer, this.#request) : undefined)
  }

  /** Who is excluded, by slug, and how many. Looks at every row only where the request excludes some. */
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
