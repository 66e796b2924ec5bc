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
import { type Restrictions, Visibility } from './visibility.ts'
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
const noRow = -1
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
  visibility: Visibility | undefined
}

/**
 * Gives the same order as scoring every agent, but scores only a few: the index's sums bound each score from above,
 * and only agents that may still be among the candidates are scored exactly.
 */
export class Ranker {
  readonly #parts: Parts
  readonly #sums = new ScoreSums()
  readonly #visibilities = new WeakMap<Restrictions, { versions: string; visibility: Visibility }>()
  #modelRows = { rows: -1, learned: -1, rowOf: new Int32Array(0) }

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
      total: rows.size - (run.visibility?.hidden ?? 0) - excludedTotal,
    }
  }

  #start(request: NegotiationRequest, options: RankOptions): Run {
    const { rows, knowledgeOf } = this.#parts
    const query = queryOf(request)
    const visibility = options.restrictions && this.#visibilityOf(options.restrictions)
    const knowledge = memoized(this.#amongVisible(knowledgeOf(undefined, options), visibility))
    const shares = sharesOf(request.weights)
    return {
      request,
      options,
      query,
      knowledge,
      mass: massOf(query, knowledge),
      shares,
      restMost: weightedSum(shares, perfectExceptSkill),
      eligibility: new Eligibility(rows, request, options.evenAway, visibility),
      best: new TopCandidates(Math.min(limitMax, options.limit ?? limitDefault)),
      refused: [],
      visibility,
    }
  }

  /** Computed once for each version of the restrictions and of the rows. */
  #visibilityOf(restrictions: Restrictions): Visibility {
    const { rows, words } = this.#parts
    const versions = `${restrictions.version} ${rows.version}`
    const known = this.#visibilities.get(restrictions)
    if (known?.versions === versions) return known.visibility
    const visibility = new Visibility(restrictions, rows, words)
    this.#visibilities.set(restrictions, { versions, visibility })
    return visibility
  }

  /** The rows of the agents with examples, indexed by the number that the feedback model gives them. */
  #rowsOfModels(): Int32Array {
    const { rows, learned } = this.#parts
    const known = this.#modelRows
    if (known.rows === rows.version && known.learned === learned.version) return known.rowOf
    const rowOf = new Int32Array(learned.capacity).fill(noRow)
    for (const [agent, number] of learned.numbered()) rowOf[number] = rows.byId(agent)?.number ?? noRow
    this.#modelRows = { rows: rows.version, learned: learned.version, rowOf }
    return rowOf
  }

  /** Knowledge about all agents, without what hidden agents contribute to it. */
  #amongVisible(knowledge: Knowledge, visibility: Visibility | undefined): Knowledge {
    if (visibility === undefined) return knowledge
    const { rows, learned } = this.#parts
    const isHidden = (agent: string) => {
      const row = rows.byId(agent)
      return row === undefined || visibility.isHidden(row.number)
    }
    return {
      ...knowledge,
      rarityOf: (stem) => visibility.rarityOf(stem),
      feedbackMost: (query, mass) => learned.most(query, mass, isHidden),
      feedbackWeight: (query, mass) => learned.share(query, mass, isHidden),
    }
  }

  /** Scores agents whose words, direction or examples match the request. */
  #scoreTouched(run: Run): void {
    const { words, learned } = this.#parts
    const { query, mass, knowledge } = run
    const sums = this.#sums
    addWords(query, words, knowledge, sums)
    addFeedback(run, this.#rowsOfModels(), learned, sums)
    for (const unit of mostPromising(run, sums, words)) this.#visit(words.rowOf(unit), run)
    this.#scoreRest(run, query.meaning === undefined ? 0 : meaningWeight * mass)
    this.#visitLimited(run)
  }

  /**
   * The bounds of the index are those of complete offers. They hold for a single skill, but not for several skills
   * together, so offers with several skills that share a word with the request are all scored.
   */
  #visitLimited(run: Run): void {
    const { rows } = this.#parts
    for (const number of run.visibility?.limitedRows() ?? []) {
      if (run.visibility?.hasOneSkill(number) === true) continue
      const { units } = rows.byNumber(number)
      if (units.some((unit) => !this.#sums.isSilent(unit, number))) this.#visit(number, run)
    }
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
      const row = index.rowOf(unit)
      if (row < 0 || sums.isSilent(unit, row) || seen[row] === ranking) continue
      const said = words[unit] ?? 0
      const most = sums.evidenceMost(row, said + boundedByWords(directionMost, said))
      if (most === 0 || most < least) continue
      const isAlike = meaning !== undefined && said > 0
      const direction = isAlike ? directionMost * index.likeness(unit, meaning) : 0
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
      if (seen[row.number] === ranking || run.visibility?.isHidden(row.number) === true) continue
      this.#offer(row, scoreWith(0, offerOf(row, run), request), run)
    }
  }

  #visit(number: number, run: Run): void {
    const { seen, ranking } = this.#sums
    if (seen[number] === ranking) return
    seen[number] = ranking
    if (run.visibility?.isHidden(number) === true) return
    const row = this.#parts.rows.byNumber(number)
    if (run.eligibility.rule(row) !== undefined) return
    this.#offer(row, exactScoreOf(offerOf(row, run), run.request, this.#knowledge(row, run)), run)
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

  #knowledge(row: Row, { options, knowledge, visibility }: Run): Knowledge {
    const { rarityOf, feedbackMost, feedbackWeight } = knowledge
    const known = { ...this.#parts.knowledgeOf(row, options), ...(rarityOf !== undefined && { rarityOf }) }
    if (visibility === undefined) return known
    const { nearness } = known
    return {
      ...known,
      ...(feedbackMost !== undefined && { feedbackMost }),
      ...(feedbackWeight !== undefined && { feedbackWeight }),
      ...(nearness !== undefined && { nearness: visibility.ofSkills(row, nearness) }),
    }
  }

  #answer(row: Row, run: Run) {
    return {
      id: row.id,
      slug: row.slug,
      ...negotiate(offerOf(row, run), run.request, this.#knowledge(row, run)),
    }
  }
}

const offerOf = (row: Row, { visibility }: Run) => visibility?.offerOf(row) ?? row.offer

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
function addFeedback(
  { query, mass, knowledge }: Run,
  rowOf: Int32Array,
  learned: FeedbackModel,
  sums: ScoreSums,
): void {
  const share = knowledge.feedbackWeight?.(query, mass) ?? learned.share(query, mass)
  learned.forEach(query, mass, share, (agent, most, known) => {
    const row = rowOf[agent] ?? noRow
    if (row !== noRow) sums.setFeedback(row, most, known)
  })
  sums.most = knowledge.feedbackMost?.(query, mass) ?? learned.most(query, mass)
}

/** The units with the highest upper bounds, best first: twice as many as there are places. */
function mostPromising({ options, visibility }: Run, sums: ScoreSums, index: WordIndex): number[] {
  const count = 2 * (options.limit ?? limitDefault)
  // Two arrays of numbers instead of objects: a ranking visits thousands of units, and objects would be
  // garbage.
  const [units, most]: [number[], number[]] = [[], []]
  let least = 0
  for (let unit = 0; unit < index.capacity; unit += 1) {
    const row = index.rowOf(unit)
    if (row < 0 || sums.isSilent(unit, row) || visibility?.isHidden(row) === true) continue
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
