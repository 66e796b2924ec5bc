import type { Knowledge } from '../score/knowledge.ts'
import type { NegotiationResult } from '../score/negotiate.ts'
import type { Facts, Offer } from '../score/offer.ts'
import type { Query } from '../score/query.ts'
import type { NegotiationRequest } from '../score/request.ts'
import type { TrainingExample } from '../score/training-example.ts'
import type { ExcludedAgent } from './eligibility.ts'
import { FeedbackModel, type FeedbackModelOptions } from './feedback-model.ts'
import { Ranker } from './ranker.ts'
import { type Row, Rows, withFacts } from './rows.ts'
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
  /** Embedding of the request text, of length 1, from the same model as the agents' vectors. */
  queryVector?: Float32Array
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
  readonly #ruled = new Set<Row>()
  #away = 0
  readonly #learned: FeedbackModel
  readonly #ranker: Ranker

  constructor(options: Omit<FeedbackModelOptions, 'ownOf'> = {}) {
    this.#learned = new FeedbackModel({
      ...options,
      ownOf: (id) => this.#rows.byId(id)?.profile.units.at(-1),
    })
    const parts = { rows: this.#rows, words: this.#words, learned: this.#learned, ruled: this.#ruled }
    this.#ranker = new Ranker({ ...parts, knowledgeOf: (row, asked) => this.#knowledge(row, asked) })
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
    this.#learned.refreshOwn(id)
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

  /** Sets the embeddings of the agent's skills, in skill order and each of length 1. Undefined removes the embeddings. */
  setVectors(id: string, vectors: readonly Float32Array[] | undefined): void {
    const row = this.#rows.byId(id)
    if (row === undefined) return
    if (vectors === undefined) delete row.vectors
    else row.vectors = vectors
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
  knowledgeOf(id: string, asked: RankOptions = {}): Knowledge {
    const row = this.#rows.byId(id)
    return row === undefined ? {} : this.#knowledge(row, asked)
  }

  rank(request: NegotiationRequest, options: RankOptions = {}): Ranking {
    return this.#ranker.rank(request, options)
  }

  #knowledge(row: Row | undefined, { queryVector, withoutEmbeddings }: RankOptions): Knowledge {
    const rarityOf = (stem: string) => this.#words.rarityOf(stem)
    const without = withoutEmbeddings === undefined ? {} : { withoutEmbeddings }
    if (row === undefined) return { rarityOf, ...without }
    const { id, vectors } = row
    const learned = this.#learned
    return {
      rarityOf,
      ...without,
      feedbackMost: (query: Query, mass: number) => learned.most(query, mass),
      feedbackWeight: (query: Query, mass: number) => learned.share(query, mass),
      ...(learned.knows(id) && {
        known: learned.known(id),
        learned: (feature: string) => learned.evidence(id, feature),
        isInExamples: (feature: string) => learned.isInExamples(id, feature),
        past: (query: Query) => learned.past(id, query),
      }),
      ...(queryVector !== undefined &&
        vectors !== undefined && { nearness: nearnessOf(vectors, queryVector) }),
    }
  }

  #drop(row: Row): void {
    this.#words.remove(row.units, row.profile)
    this.#rows.remove(row)
    this.#ruled.delete(row)
    if (row.away === true) this.#away -= 1
  }
}

/**
 * Cosine of each vector with the query vector, all of length 1. Vectors of another length come from another
 * model and give 0.
 */
function nearnessOf(vectors: readonly Float32Array[], request: Float32Array): number[] {
  return vectors.map((vector) => {
    if (vector.length !== request.length) return 0
    let sum = 0
    for (let at = 0; at < vector.length; at += 1) sum += (vector[at] ?? 0) * (request[at] ?? 0)
    return sum
  })
}
