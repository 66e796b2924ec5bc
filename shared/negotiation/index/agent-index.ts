import type { Knowledge } from '../score/knowledge.ts'
import type { NegotiationResult } from '../score/negotiate.ts'
import type { Facts, Offer } from '../score/offer.ts'
import type { NegotiationRequest } from '../score/request.ts'
import type { TrainingExample } from '../score/training-example.ts'
import type { ExcludedAgent } from './eligibility.ts'
import { FeedbackModel, type FeedbackModelOptions } from './feedback-model.ts'
import { Ranker } from './ranker.ts'
import { type Row, Rows, withFacts } from './rows.ts'
import { type AgentVectors, type QueryMeaning, SkillVectors } from './skill-vectors.ts'
import type { Restrictions } from './visibility.ts'
import { WordIndex } from './word-index.ts'

export interface RankedAgent extends NegotiationResult {
  id: string
  slug: string
}

export interface Ranking {
  /** Candidates sorted by score, then by unrounded score, then by slug. */
  candidates: RankedAgent[]
  /** At most `excludedLimit` agents, sorted by slug. Includes agents that break a hard constraint. */
  excluded: ExcludedAgent[]
  excludedTotal: number
  /** Number of agents that are eligible as candidates. */
  total: number
  /** The answer of an agent, which need not be among the candidates. Undefined if it is excluded or not visible. */
  answerOf: (id: string) => RankedAgent | undefined
}

export interface RankOptions {
  /** Maximum number of candidates. Default 10, at most 1,000. */
  limit?: number
  /** Maximum number of excluded agents in the result. Default 100. */
  excludedLimit?: number
  /**
   * Called for agents that would become candidates. Returns the rule that excludes the agent, or undefined.
   */
  refuse?: (id: string) => string | undefined
  /** Whether to also rank agents that are temporarily excluded. */
  evenAway?: boolean
  /** The agents and skills that the caller may not see. The ranking is as if they did not exist. */
  restrictions?: Restrictions
  /** The sentence vectors of the request, from the same model as the agents' vectors. */
  meaning?: QueryMeaning
  /** Why there is no embedding although an endpoint is configured. Included in the reasons. */
  withoutEmbeddings?: string
}

/**
 * The index of all agents that can be negotiated for. Ranks them exactly as scoring each with `negotiate` and
 * `knowledgeOf` would.
 */
export class AgentIndex {
  readonly #rows = new Rows()
  readonly #words = new WordIndex()
  readonly #vectors = new SkillVectors()
  readonly #ruled = new Set<Row>()
  #away = 0
  readonly #learned: FeedbackModel
  readonly #ranker: Ranker

  constructor(options: FeedbackModelOptions = {}) {
    this.#learned = new FeedbackModel({
      ...options,
      ownTextsOf: (agent) => {
        const vectors = this.#rows.byId(agent)?.vectors
        return vectors && this.#vectors.comparerOf(vectors)
      },
    })
    this.#ranker = new Ranker({
      rows: this.#rows,
      words: this.#words,
      vectors: this.#vectors,
      learned: this.#learned,
      ruled: this.#ruled,
    })
  }

  get size(): number {
    return this.#rows.size
  }

  /** The feedback model of the agents in this index. */
  get learned(): FeedbackModel {
    return this.#learned
  }

  /** Adds or replaces an agent. The agent's exclusion and feedback are kept. */
  put(id: string, slug: string, offer: Offer): void {
    const before = this.#rows.byId(id)
    if (before !== undefined) this.#drop(before)
    const row = this.#rows.add(id, slug, offer)
    row.units = this.#words.add(row.number, row.profile)
    if (before?.rule !== undefined) this.#rule(row, before.rule, before.away)
  }

  /** Removes an agent. Its training examples are kept until `learned.forgetAgent` is called. */
  remove(id: string): void {
    const row = this.#rows.byId(id)
    if (row !== undefined) this.#drop(row)
  }

  /** Replaces the load, measurements and price of an agent. */
  setFacts(id: string, facts: Facts): void {
    const row = this.#rows.byId(id)
    if (row !== undefined) row.offer = withFacts(row.offer, facts)
  }

  /**
   * Sets the sentence vectors of the agent's texts. Undefined removes them, so that the agent is ranked by words only. Vectors for
   * another number of skills are ignored, because the agent has changed since.
   */
  setVectors(id: string, vectors: AgentVectors | undefined): void {
    const row = this.#rows.byId(id)
    if (row === undefined || (vectors !== undefined && vectors.skills.length !== row.offer.skills.length))
      return
    if (row.vectors !== undefined) this.#vectors.remove(row.vectors)
    delete row.vectors
    if (vectors !== undefined) row.vectors = this.#vectors.add(vectors)
    this.#learned.textsChanged(id)
  }

  /**
   * Excludes the agent from the candidates until `include` is called, for example because it is unreachable.
   * @param temporary whether the rule is expected to end soon
   */
  exclude(id: string, rule: string, temporary = false): void {
    const row = this.#rows.byId(id)
    if (row !== undefined) this.#rule(row, rule, temporary)
  }

  include(id: string): void {
    const row = this.#rows.byId(id)
    if (row !== undefined) this.#unrule(row)
  }

  /** Number of temporarily excluded agents. */
  get away(): number {
    return this.#away
  }

  #rule(row: Row, rule: string, away = false): void {
    this.#unrule(row)
    row.rule = rule
    row.away = away
    this.#ruled.add(row)
    if (away) this.#away += 1
  }

  #unrule(row: Row): void {
    if (row.rule === undefined) return
    if (row.away === true) this.#away -= 1
    delete row.rule
    delete row.away
    this.#ruled.delete(row)
  }

  /** @returns examples that were dropped because they exceed the limit per agent; the store may remove them */
  learn(...examples: readonly TrainingExample[]): TrainingExample[] {
    return this.#learned.learn(...examples)
  }

  /** Removes the training examples of a context (`contexts/clear`). */
  forgetContext(context: string): void {
    this.#learned.forgetContext(context)
  }

  /** Everything that this index knows about an agent beyond its offer. */
  knowledgeOf(id: string, options: RankOptions = {}): Knowledge {
    const row = this.#rows.byId(id)
    return row === undefined ? {} : this.#ranker.knowledgeOf(row, options)
  }

  rank(request: NegotiationRequest, options: RankOptions = {}): Ranking {
    return this.#ranker.rank(request, options)
  }

  #drop(row: Row): void {
    this.#words.remove(row.units, row.profile)
    if (row.vectors !== undefined) this.#vectors.remove(row.vectors)
    this.#rows.remove(row)
    this.#learned.textsChanged(row.id)
    this.#ruled.delete(row)
    if (row.away === true) this.#away -= 1
  }
}
