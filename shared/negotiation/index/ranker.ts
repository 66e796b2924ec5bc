import { boundedByWords, evidenceFor, massOf, meaningWeight, nearnessEvidence } from '../score/evidence.ts'
import type { Knowledge } from '../score/knowledge.ts'
import { exactScoreOf, negotiate, scoreWith } from '../score/negotiate.ts'
import { type Query, queryOf } from '../score/query.ts'
import type { NegotiationRequest } from '../score/request.ts'
import { type Subscores, sharesOf, weightedSum } from '../score/weights.ts'
import type { Ranking, RankOptions } from './agent-index.ts'
import { Eligibility, type ExcludedAgent } from './eligibility.ts'
import type { FeedbackModel } from './feedback-model.ts'
import type { Row, Rows } from './rows.ts'
import { addWords, ScoreSums } from './score-sums.ts'
import { TopCandidates } from './top-candidates.ts'
import type { WordIndex } from './word-index.ts'

export interface Parts {
  rows: Rows
  words: WordIndex
  learned: FeedbackModel
  ruled: ReadonlySet<Row>
  knowledgeOf: (row: Row | undefined, asked: RankOptions) => Knowledge
}

const limitMax = 1000
const limitDefault = 10
const excludedDefault = 100
const perfectExceptSkill: Subscores = { skillMatch: 0, ioCompatibility: 1, performance: 1, load: 1, cost: 1 }

/** The state of one ranking. */
interface Run {
  request: NegotiationRequest
  options: RankOptions
  query: Query
  knowledge: Knowledge
  mass: number
  shares: Subscores
  /** The best possible score of an agent whose texts have nothing in common with the request. */
  restMost: number
  eligibility: Eligibility
  best: TopCandidates
  refused: ExcludedAgent[]
}

/**
 * Gives the same order as scoring every agent, but scores only a few: the index's sums bound each score from above,
 * and only agents that may still be among the candidates are scored exactly.
 */
export class Ranker {
  readonly #parts: Parts
  readonly #sums = new ScoreSums()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  rank(request: NegotiationRequest, options: RankOptions): Ranking {
    const { rows, words, ruled } = this.#parts
    const run = this.#start(request, options)
    this.#sums.ready(words.capacity, rows.capacity)
    if (options.queryVector !== undefined) this.#scoreNear(run)
    else this.#scoreTouched(run)
    this.#scoreOthers(run)
    const { named, total } = run.eligibility.excluded(rows, ruled, options.excludedLimit ?? excludedDefault)
    const excludedTotal = total + run.refused.length
    return {
      candidates: run.best.scored.map(({ row }) => this.#answer(rows.byNumber(row), run)),
      excluded: [...run.refused, ...named].slice(0, options.excludedLimit ?? excludedDefault),
      excludedTotal,
      total: rows.size - excludedTotal,
    }
  }

  #start(request: NegotiationRequest, options: RankOptions): Run {
    const { rows, knowledgeOf } = this.#parts
    const query = queryOf(request)
    const knowledge = memoized(knowledgeOf(undefined, options))
    const shares = sharesOf(request.weights)
    return {
      request,
      options,
      query,
      knowledge,
      mass: massOf(query, knowledge),
      shares,
      restMost: weightedSum(shares, perfectExceptSkill),
      eligibility: new Eligibility(rows, request, options.evenAway),
      best: new TopCandidates(Math.min(limitMax, options.limit ?? limitDefault)),
      refused: [],
    }
  }

  /** Scores agents whose words, direction or examples match the request. */
  #scoreTouched(run: Run): void {
    const { rows, words, learned } = this.#parts
    const { query, mass, knowledge } = run
    const sums = this.#sums
    addWords(query, words, knowledge, sums)
    addFeedback(query, mass, learned, rows, sums)
    for (const unit of mostPromising(sums, words, 2 * (run.options.limit ?? limitDefault)))
      this.#visit(words.rowOf(unit), run)
    this.#scoreRest(run, query.meaning === undefined ? 0 : meaningWeight * mass)
  }

  /**
   * Visits every unit whose upper bound may still reach the candidates: first bounded without its direction,
   * then with it.
   */
  #scoreRest(run: Run, directionMost: number): void {
    const { words: index } = this.#parts
    const sums = this.#sums
    const { words, seen, ranking } = sums
    const { meaning } = run.query
    let least = this.#least(run)
    for (let unit = 0; unit < index.capacity; unit += 1) {
      if (sums.isSilent(unit)) continue
      const row = index.rowOf(unit)
      if (row < 0 || seen[row] === ranking) continue
      const said = words[unit] ?? 0
      const most = sums.evidenceMost(row, said + boundedByWords(directionMost, said))
      if (most === 0 || most < least) continue
      const direction = meaning === undefined ? 0 : directionMost * index.likeness(unit, meaning)
      if (sums.evidenceMost(row, said + boundedByWords(direction, said)) < least) continue
      this.#visit(row, run)
      least = this.#least(run)
    }
  }

  /** With embeddings, every agent may match. */
  #scoreNear(run: Run): void {
    for (const row of this.#parts.rows.ordered()) {
      if (row.vectors !== undefined && nearnessEvidence(1, run.mass) > 0) this.#visit(row.number, run)
    }
    const { queryVector: _, ...options } = run.options
    this.#scoreTouched({ ...run, options })
  }

  /**
   * Scores the remaining agents by slug. All agents that match the request have already been scored, so a skill match
   * of 0 is exact.
   */
  #scoreOthers(run: Run): void {
    const { best, restMost, request } = run
    const { seen, ranking } = this.#sums
    for (const row of this.#parts.rows.ordered()) {
      if (!best.takes(restMost, row.slug)) return
      if (seen[row.number] !== ranking) this.#offer(row, scoreWith(0, row.offer, request), run)
    }
  }

  #visit(number: number, run: Run): void {
    const { seen, ranking } = this.#sums
    if (seen[number] === ranking) return
    seen[number] = ranking
    const row = this.#parts.rows.byNumber(number)
    if (run.eligibility.rule(row) !== undefined) return
    this.#offer(row, exactScoreOf(row.offer, run.request, this.#knowledge(row, run)), run)
  }

  #offer(row: Row, score: number, { best, eligibility, options, refused }: Run): void {
    if (!best.takes(score, row.slug) || eligibility.rule(row) !== undefined) return
    const rule = options.refuse?.(row.id)
    if (rule === undefined) best.put({ row: row.number, slug: row.slug, score })
    else refused.push({ id: row.id, slug: row.slug, rule })
  }

  /** The smallest evidence with which an agent may still become a candidate. */
  #least({ best, shares, restMost, mass }: Run): number {
    const { last } = best
    if (last === undefined || last.score <= restMost) return 0
    if (shares.skillMatch === 0) return Number.POSITIVE_INFINITY
    return evidenceFor((last.score - restMost) / shares.skillMatch - 1e-9, mass)
  }

  #knowledge(row: Row, { options, knowledge }: Run): Knowledge {
    const { rarityOf } = knowledge
    return { ...this.#parts.knowledgeOf(row, options), ...(rarityOf !== undefined && { rarityOf }) }
  }

  #answer(row: Row, run: Run) {
    return { id: row.id, slug: row.slug, ...negotiate(row.offer, run.request, this.#knowledge(row, run)) }
  }
}

/** Caches rarities for one ranking. */
function memoized(knowledge: Knowledge): Knowledge {
  const { rarityOf } = knowledge
  if (rarityOf === undefined) return knowledge
  const known = new Map<string, number>()
  return {
    ...knowledge,
    rarityOf: (stem) => {
      let value = known.get(stem)
      if (value === undefined) {
        value = rarityOf(stem)
        known.set(stem, value)
      }
      return value
    },
  }
}

/** Sets the upper bound of the feedback and its weight for every boosted agent. */
function addFeedback(query: Query, mass: number, learned: FeedbackModel, rows: Rows, sums: ScoreSums): void {
  learned.forEach(query, mass, (agent, most, known) => {
    const row = rows.byId(agent)
    if (row !== undefined) sums.setFeedback(row.number, most, known)
  })
  sums.most = learned.most(query, mass)
}

/** The `count` units with the highest upper bounds, best first. */
function mostPromising(sums: ScoreSums, index: WordIndex, count: number): number[] {
  // Two arrays of numbers instead of objects: a ranking visits thousands of units, and objects would be
  // garbage.
  const [units, most]: [number[], number[]] = [[], []]
  let least = 0
  for (let unit = 0; unit < index.capacity; unit += 1) {
    if (sums.isSilent(unit)) continue
    const row = index.rowOf(unit)
    if (row < 0) continue
    const said = sums.evidenceMost(row, sums.words[unit] ?? 0)
    if (said <= least) continue
    let at = Math.min(units.length, count - 1)
    for (; at > 0 && (most[at - 1] ?? 0) < said; at -= 1) {
      most[at] = most[at - 1] ?? 0
      units[at] = units[at - 1] ?? 0
    }
    most[at] = said
    units[at] = unit
    if (units.length === count) least = most[count - 1] ?? 0
  }
  return units
}
