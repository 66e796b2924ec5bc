import type { Negotiated } from '../../shared/negotiation/negotiate.ts'
import { negotiate } from '../../shared/negotiation/negotiate.ts'
import type { Facts, Offer } from '../../shared/negotiation/offer.ts'
import type { NegotiationRequest } from '../../shared/negotiation/request.ts'

export interface Ranked extends Negotiated {
  id: string
  slug: string
}

export interface Ranking {
  /** Best first: score, then the unrounded score, then the slug. */
  candidates: Ranked[]
  /** At most `excludedLimit`, in the order of their slugs; broken hard constraints are among them. */
  excluded: { id: string; slug: string; rule: string }[]
  excludedTotal: number
  /** How many agents could be candidates. */
  total: number
}

export interface RankOptions {
  /** Candidates wanted; 10 by default. */
  limit?: number
  /** Excluded agents to name; 100 by default. */
  excludedLimit?: number
  /** The last word on an agent that would be a candidate, asked of those alone: the rule that excludes it. */
  refuse?: (id: string) => string | undefined
  /** Embedding of the wanted text, of the same model as the vectors of the agents. */
  queryVector?: Float32Array
}

interface Row {
  id: string
  slug: string
  offer: Offer
  rule?: string
}

/** Every agent that can be negotiated for, ranked as `negotiate` scores them one by one. */
export class AgentIndex {
  readonly #rows = new Map<string, Row>()

  get size(): number {
    return this.#rows.size
  }

  /** Takes an agent in, or anew. What excludes it stays as it was. */
  put(id: string, slug: string, offer: Offer): void {
    const rule = this.#rows.get(id)?.rule
    this.#rows.set(id, { id, slug, offer, ...(rule === undefined ? {} : { rule }) })
  }

  remove(id: string): void {
    this.#rows.delete(id)
  }

  /** Replaces what is known of its load, speed and price. */
  setFacts(id: string, facts: Facts): void {
    const row = this.#rows.get(id)
    if (row === undefined) return
    const { name, description, skills } = row.offer
    row.offer = {
      ...(name === undefined ? {} : { name }),
      ...(description === undefined ? {} : { description }),
      skills,
      ...facts,
    }
  }

  /** It is never a candidate until it is included again: not admitted, unreachable, quarantined. */
  exclude(id: string, rule: string): void {
    const row = this.#rows.get(id)
    if (row !== undefined) row.rule = rule
  }

  include(id: string): void {
    const row = this.#rows.get(id)
    if (row !== undefined) delete row.rule
  }

  rank(wanted: NegotiationRequest, options: RankOptions = {}): Ranking {
    const rows = [...this.#rows.values()].sort((a, b) => (a.slug < b.slug ? -1 : 1))
    const excluded: Ranking['excluded'] = []
    const candidates: Ranked[] = []
    for (const { id, slug, offer, rule } of rows) {
      const answer = negotiate(offer, wanted)
      const why = rule ?? answer.brokenConstraint ?? options.refuse?.(id)
      if (why === undefined) candidates.push({ id, slug, ...answer })
      else excluded.push({ id, slug, rule: why })
    }
    candidates.sort((a, b) => b.exactScore - a.exactScore || (a.slug < b.slug ? -1 : 1))
    return {
      candidates: candidates.slice(0, options.limit ?? 10),
      excluded: excluded.slice(0, options.excludedLimit ?? 100),
      excludedTotal: excluded.length,
      total: candidates.length,
    }
  }
}
