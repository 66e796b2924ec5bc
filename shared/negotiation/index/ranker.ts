import { logOddsFor, oddsLine, type Registry } from '../score/calibration.ts'
import { boundedByWords, massOf, meaningWeight, ownEvidence, wordScale } from '../score/evidence.ts'
import type { Knowledge, Learned } from '../score/knowledge.ts'
import { expectedEvidence, withLearned } from '../score/learning.ts'
import { exactScoreOf, negotiate, scoreWith } from '../score/negotiate.ts'
import { profileOf } from '../score/profile.ts'
import { type Query, queryOf } from '../score/query.ts'
import type { NegotiationRequest } from '../score/request.ts'
import { ownOf } from '../score/skill-match.ts'
import { type Subscores, sharesOf, weightedSum } from '../score/weights.ts'
import type { RankedAgent, Ranking, RankOptions } from './agent-index.ts'
import { Eligibility, type ExcludedAgent } from './eligibility.ts'
import type { FeedbackModel, LearnedValues } from './feedback-model.ts'
import type { Row, Rows } from './rows.ts'
import { ScoreSums } from './score-sums.ts'
import { nearnessOf, type QueryCosines, type SkillVectors } from './skill-vectors.ts'
import { mostPromising, TopCandidates } from './top-candidates.ts'
import { type Restrictions, Visibility } from './visibility.ts'
import { memoized, type WordIndex } from './word-index.ts'

export interface Parts {
  rows: Rows
  words: WordIndex
  vectors: SkillVectors
  learned: FeedbackModel
  ruled: ReadonlySet<Row>
}

const limitMax = 1000
const limitDefault = 10
const excludedDefault = 100
const noRow = -1
const perfectExceptSkill: Subscores = { skillMatch: 0, ioCompatibility: 1, performance: 1, load: 1, cost: 1 }

/** The values of one query that are the same for all agents. Computed once, however often the query is ranked. */
interface Common {
  query: Query
  options: Pick<RankOptions, 'meaning' | 'restrictions'>
  versions: string
  visibility: Visibility | undefined
  rarityOf: (stem: string) => number
  mass: number
  registry: Registry
  cosines: QueryCosines | undefined
  /** How near the best skill of each row is, NaN without vectors. Undefined without vectors of the query. */
  near: Float64Array | undefined
  /** Upper bound of the evidence of the agent's own texts, indexed by row. */
  ownMost: Float64Array
  /** Undefined if no agent has examples. */
  past: Past | undefined
}

interface Past {
  values: LearnedValues
  /** The maximum evidence of any agent. */
  most: number
  /** The maximum evidence of own texts, of agents ranked by words only and of those with vectors. */
  bestOwn: { words: number; meaning: number }
}

/** The state of one ranking. */
interface Run {
  request: NegotiationRequest
  options: RankOptions
  common: Common
  shares: Subscores
  /** The best possible score of an agent whose texts have nothing in common with the request. */
  restMost: number
  eligibility: Eligibility
  best: TopCandidates
  refused: ExcludedAgent[]
  visited: Set<number>
}

/**
 * Gives the same order as scoring every agent, but scores only a few: the index's sums bound each score from above,
 * and only agents that may still be among the candidates are scored exactly.
 */
export class Ranker {
  readonly #parts: Parts
  readonly #sums = new ScoreSums()
  readonly #visibilities = new WeakMap<Restrictions, { versions: string; visibility: Visibility }>()
  #last: Common | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  rank(request: NegotiationRequest, options: RankOptions): Ranking {
    const { rows, ruled } = this.#parts
    const run = this.#start(request, options)
    this.#scoreMatching(run)
    this.#scoreOthers(run)
    const limit = options.excludedLimit ?? excludedDefault
    const { named, total } = run.eligibility.excluded(rows, ruled, limit)
    const excludedTotal = total + run.refused.length
    return {
      candidates: run.best.scored.map(({ row }) => this.#answer(rows.byNumber(row), run)),
      excluded: [...run.refused, ...named].slice(0, limit),
      excludedTotal,
      total: rows.size - (run.common.visibility?.hidden ?? 0) - excludedTotal,
      answerOf: (id) => this.#answerOf(id, run),
    }
  }

  /** Everything that the index knows about an agent beyond its offer. */
  knowledgeOf(row: Row, options: RankOptions): Knowledge {
    const visibility = options.restrictions && this.#visibilityOf(options.restrictions)
    const rarityOf = (stem: string) => (visibility ?? this.#parts.words).rarityOf(stem)
    const registry = this.#registryOf(visibility)
    return this.#knowledge(row, options, { visibility, rarityOf, registry }, (query) =>
      this.#commonOf(query, options),
    )
  }

  #start(request: NegotiationRequest, options: RankOptions): Run {
    const common = this.#commonOf(queryOf(request), options)
    const shares = sharesOf(request.weights)
    return {
      request,
      options,
      common,
      shares,
      restMost: weightedSum(shares, perfectExceptSkill),
      eligibility: new Eligibility(this.#parts.rows, request, options.evenAway, common.visibility),
      best: new TopCandidates(Math.min(limitMax, options.limit ?? limitDefault)),
      refused: [],
      visited: new Set(),
    }
  }

  #commonOf(query: Query, { meaning, restrictions }: RankOptions): Common {
    const { rows, vectors, learned } = this.#parts
    const versions = `${rows.version} ${vectors.version} ${learned.version} ${restrictions?.version ?? ''}`
    const last = this.#last
    const isSame = last?.options.meaning === meaning && last?.options.restrictions === restrictions
    if (last !== undefined && last.query === query && last.versions === versions && isSame) return last
    const visibility = restrictions && this.#visibilityOf(restrictions)
    const rarityOf = memoized((stem) => (visibility ?? this.#parts.words).rarityOf(stem))
    const common: Common = {
      query,
      options: { ...(meaning && { meaning }), ...(restrictions && { restrictions }) },
      versions,
      visibility,
      rarityOf,
      mass: massOf(query, { rarityOf }),
      registry: this.#registryOf(visibility),
      cosines: meaning && vectors.cosines(meaning),
      near: undefined,
      ownMost: new Float64Array(0),
      past: undefined,
    }
    if (common.cosines !== undefined)
      common.near = vectors.bestNearness(common.cosines, rows.all(), rows.capacity, rows.version)
    this.#sums.read(query, this.#parts.words, rows.capacity, { rarityOf })
    common.ownMost = this.#ownMost(common)
    common.past = this.#pastOf(common)
    this.#last = common
    return common
  }

  /** The upper bounds of own evidence. The sums of complete offers do not bound limited offers with several skills. */
  #ownMost({ query, mass, cosines, visibility, near }: Common): Float64Array {
    const { rows } = this.#parts
    const { best, touched, touchedCount } = this.#sums
    const background = cosines?.of.background ?? 0
    const directionMost = query.meaning === undefined ? 0 : meaningWeight * mass
    const scale = wordScale(mass)
    const most = new Float64Array(rows.capacity).fill(Number.NEGATIVE_INFINITY)
    const setBound = (row: number) => {
      const words = best[row] ?? 0
      const value = near?.[row] ?? Number.NaN
      const isNear = !Number.isNaN(value)
      if (words === 0 && !isNear) return
      const known = words + boundedByWords(directionMost, words)
      most[row] = ownEvidence(known, isNear ? value : undefined, background, scale)
    }
    if (near === undefined) for (let at = 0; at < touchedCount; at += 1) setBound(touched[at] ?? 0)
    else for (let row = 0; row < most.length; row += 1) setBound(row)
    if (visibility === undefined) return most
    for (const row of visibility.limitedRows())
      if (!visibility.hasOneSkill(row) && (best[row] ?? 0) > 0) most[row] = Number.POSITIVE_INFINITY
    for (let row = 0; row < most.length; row += 1)
      if (visibility.isHidden(row)) most[row] = Number.NEGATIVE_INFINITY
    return most
  }

  #registryOf(visibility: Visibility | undefined): Registry {
    const { rows, learned } = this.#parts
    const agents = rows.size - (visibility?.hidden ?? 0)
    let sum = 0
    for (const [agent, known] of learned.shares()) {
      const row = rows.byId(agent)
      if (row !== undefined && visibility?.isHidden(row.number) !== true) sum += known
    }
    return { agents, trained: sum === 0 ? 0 : sum / agents }
  }

  #pastOf(common: Common): Past | undefined {
    const { rows, learned } = this.#parts
    if (learned.size === 0) return undefined
    const { query, visibility, options } = common
    const values = learned.valuesFor(query, options.meaning?.whole)
    let most = 0
    for (const [agent, number] of learned.numbered()) {
      const row = rows.byId(agent)
      if (row !== undefined && visibility?.isHidden(row.number) !== true)
        most = Math.max(most, values.evidence[number] ?? 0)
    }
    const bestOwn =
      most === 0
        ? { words: 0, meaning: 0 }
        : { words: this.#bestOwn(common, false), meaning: this.#bestOwn(common, true) }
    return { values, most, bestOwn }
  }

  /** The maximum own evidence of the agents with or without vectors, at least 0. */
  #bestOwn(common: Common, hasMeaning: boolean): number {
    const { ownMost, near } = common
    const isKind = (row: number) => !Number.isNaN(near?.[row] ?? Number.NaN) === hasMeaning
    let first = noRow
    for (let row = 0; row < ownMost.length; row += 1)
      if (isKind(row) && (first === noRow || (ownMost[row] ?? 0) > (ownMost[first] ?? 0))) first = row
    let best = 0
    const take = (row: number) => {
      if ((ownMost[row] ?? 0) > best)
        best = Math.max(best, this.#ownOf(this.#parts.rows.byNumber(row), common))
    }
    if (first !== noRow) take(first)
    for (let row = 0; row < ownMost.length; row += 1) if (isKind(row)) take(row)
    return best
  }

  #ownOf(row: Row, common: Common): number {
    const knowledge = this.#knowledge(row, common.options, common, () => common)
    return ownOf(profileOf(offerOf(row, common.visibility)), common.query, knowledge)
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

  /** Scores the agents with texts or examples that match the request, the most promising ones first. */
  #scoreMatching(run: Run): void {
    const bounds = this.#bounds(run.common)
    for (const row of mostPromising(bounds, 2 * (run.options.limit ?? limitDefault))) this.#visit(row, run)
    let least = this.#least(run)
    for (let row = 0; row < bounds.length; row += 1) {
      const bound = bounds[row] ?? 0
      if (bound === Number.NEGATIVE_INFINITY || bound < least || run.visited.has(row)) continue
      this.#visit(row, run)
      least = this.#least(run)
    }
  }

  /** Upper bounds of the logarithm of the odds, indexed by row. −∞ if nothing matches. */
  #bounds({ ownMost, near, registry, past }: Common): Float64Array {
    const bounds = new Float64Array(ownMost.length).fill(Number.NEGATIVE_INFINITY)
    const lines = { words: oddsLine(false, registry), meaning: oddsLine(true, registry) }
    const learned = past && this.#learnedByRow(past)
    for (let row = 0; row < ownMost.length; row += 1) {
      const own = ownMost[row] ?? 0
      const evidence = learned?.evidence[row] ?? 0
      if (own === Number.NEGATIVE_INFINITY && evidence <= 0) continue
      const hasMeaning = !Number.isNaN(near?.[row] ?? Number.NaN)
      const kind = hasMeaning ? 'meaning' : 'words'
      let value = own === Number.NEGATIVE_INFINITY ? 0 : own
      if (learned !== undefined && past !== undefined) {
        const all = { evidence, known: learned.known[row] ?? 0, most: past.most, bestOwn: past.bestOwn[kind] }
        value = withLearned(value, all) - (1 - registry.trained) * expectedEvidence(all)
        if (!hasMeaning && withLearned(own === Number.NEGATIVE_INFINITY ? 0 : own, all) <= 0) continue
      } else if (!hasMeaning && value <= 0) continue
      bounds[row] = lines[kind].slope * value + lines[kind].constant
    }
    return bounds
  }

  /** The learned evidence, indexed by row. */
  #learnedByRow({ values }: Past): LearnedValues {
    const { rows, learned } = this.#parts
    const found = { evidence: new Float64Array(rows.capacity), known: new Float64Array(rows.capacity) }
    for (const [agent, number] of learned.numbered()) {
      const row = rows.byId(agent)?.number
      if (row === undefined) continue
      found.evidence[row] = values.evidence[number] ?? 0
      found.known[row] = values.known[number] ?? 0
    }
    return found
  }

  /**
   * Scores the remaining agents by slug. All agents that match the request have already been scored, so a skill match
   * of 0 is exact.
   */
  #scoreOthers(run: Run): void {
    const { best, restMost, request, visited, common } = run
    for (const row of this.#parts.rows.ordered()) {
      if (!best.takes(restMost, row.slug)) return
      if (visited.has(row.number) || common.visibility?.isHidden(row.number) === true) continue
      this.#offer(row, scoreWith(0, offerOf(row, common.visibility), request), run)
    }
  }

  #visit(number: number, run: Run): void {
    if (run.visited.has(number)) return
    run.visited.add(number)
    const { visibility } = run.common
    const row = this.#parts.rows.byNumber(number)
    if (visibility?.isHidden(number) === true || run.eligibility.rule(row) !== undefined) return
    this.#offer(row, exactScoreOf(offerOf(row, visibility), run.request, this.#knowledgeIn(row, run)), run)
  }

  #offer(row: Row, score: number, { best, eligibility, options, refused }: Run): void {
    if (!best.takes(score, row.slug) || eligibility.rule(row) !== undefined) return
    const rule = options.refuse?.(row.id)
    if (rule === undefined) best.put({ row: row.number, slug: row.slug, score })
    else refused.push({ id: row.id, slug: row.slug, rule })
  }

  /** The smallest logarithm of odds with which an agent may still become a candidate. */
  #least({ best, shares, restMost }: Run): number {
    const { last } = best
    if (last === undefined || last.score <= restMost) return Number.NEGATIVE_INFINITY
    if (shares.skillMatch === 0) return Number.POSITIVE_INFINITY
    return logOddsFor((last.score - restMost) / shares.skillMatch - 1e-9)
  }

  #knowledgeIn(row: Row, { common, options }: Run): Knowledge {
    return this.#knowledge(row, options, common, () => common)
  }

  #knowledge(
    row: Row,
    options: RankOptions,
    { visibility, rarityOf, registry }: Pick<Common, 'visibility' | 'rarityOf' | 'registry'>,
    commonOf: (query: Query) => Common,
  ): Knowledge {
    const { vectors, learned } = this.#parts
    const { meaning, withoutEmbeddings } = options
    const near =
      meaning === undefined || row.vectors === undefined
        ? undefined
        : nearnessOf(row.vectors, vectors.cosines(meaning))
    return {
      rarityOf,
      registry,
      ...(near !== undefined && {
        nearness: ofVisible(row, near, visibility),
        background: meaning?.background ?? 0,
      }),
      ...(withoutEmbeddings !== undefined && { withoutEmbeddings }),
      ...(learned.size > 0 && {
        learned: (query: Query) => this.#learnedOf(row, commonOf(query), options),
      }),
    }
  }

  #learnedOf({ id, vectors }: Row, { past, query, cosines }: Common, { meaning }: RankOptions): Learned {
    const { learned } = this.#parts
    const number = learned.numberOf(id)
    const evidence = number === undefined ? 0 : (past?.values.evidence[number] ?? 0)
    const known = number === undefined ? 0 : (past?.values.known[number] ?? 0)
    const hasMeaning = vectors !== undefined && cosines !== undefined
    return {
      evidence,
      known,
      most: past?.most ?? 0,
      bestOwn: past?.bestOwn[hasMeaning ? 'meaning' : 'words'] ?? 0,
      similar: () => learned.similarTo(id, query, meaning?.whole),
    }
  }

  #answerOf(id: string, run: Run): RankedAgent | undefined {
    const row = this.#parts.rows.byId(id)
    const isHidden = row === undefined || run.common.visibility?.isHidden(row.number) === true
    if (isHidden || (run.eligibility.rule(row) ?? run.options.refuse?.(id)) !== undefined) return undefined
    return this.#answer(row, run)
  }

  #answer(row: Row, run: Run): RankedAgent {
    return {
      id: row.id,
      slug: row.slug,
      ...negotiate(offerOf(row, run.common.visibility), run.request, this.#knowledgeIn(row, run)),
    }
  }
}

const offerOf = (row: Row, visibility: Visibility | undefined) => visibility?.offerOf(row) ?? row.offer

const ofVisible = <T>(row: Row, values: readonly T[], visibility: Visibility | undefined): readonly T[] =>
  visibility === undefined ? values : visibility.ofSkills(row, values)
