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
import { WordIndex } from './word-index.ts'

export interface RankedAgent extends NegotiationResult {
  id: string
  slug: string
}

export interface Ranking {
  /** TopCandidates first: score, then the unrounded score, then the slug. */
  candidates: RankedAgent[]
  /** At most `excludedLimit`, in the order of their slugs; broken hard constraints are among them. */
  excluded: ExcludedAgent[]
  excludedTotal: number
  /** How many agents could be candidates. */
  total: number
}

export interface RankOptions {
  /** Candidates request; 10 by default, at most 1,000. */
  limit?: number
  /** ExcludedAgent agents to name; 100 by default. */
  excludedLimit?: number
  /** The last word on an agent that would be a candidate, asked of those alone: the rule that excludes it. */
  refuse?: (id: string) => string | undefined
  /** Agents that are excluded temporarily are ranked too, as if they were there. */
  evenAway?: boolean
  /** Embedding of the request text, of length 1, of the same model as the vectors of the agents. */
  queryVector?: Float32Array
  /** Why there is none, where embeddings are set up: the reasons say so. */
  withoutEmbeddings?: string
}

/** Every agent that can be negotiated for, ranked as `negotiate` scores them one by one with `knowledgeOf`. */
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

  /** Lessons about its agents. */
  get learned(): FeedbackModel {
    return this.#learned
  }

  /** Takes an agent in, or anew. What excludes it stays as it was, and so does what it has feedback. */
  put(id: string, slug: string, offer: Offer): void {
    const before = this.#rows.byId(id)
    if (before !== undefined) this.#drop(before)
    const row = this.#rows.add(id, slug, offer)
    row.units = this.#words.add(row.number, row.profile)
    this.#learned.refreshOwn(id)
    if (before?.rule !== undefined) this.#rule(row, before.rule, before.away)
  }

  /** What it has feedback stays until `learned.forgetAgent`. */
  remove(id: string): void {
    const row = this.#rows.byId(id)
    if (row !== undefined) this.#drop(row)
  }

  /** Replaces what is known of its load, speed and price. */
  setFacts(id: string, facts: Facts): void {
    const row = this.#rows.byId(id)
    if (row !== undefined) row.offer = withFacts(row.offer, facts)
  }

  /** Embeddings of its skills in their order, each of length 1; undefined: none. */
  setVectors(id: string, vectors: readonly Float32Array[] | undefined): void {
    const row = this.#rows.byId(id)
    if (row === undefined) return
    if (vectors === undefined) delete row.vectors
    else row.vectors = vectors
  }

  /**
   * It is never a candidate until it is included again: not eligibility, unreachable, quarantined.
   * @param temporary the rule is expected to end by itself soon
   */
  exclude(id: string, rule: string, temporary = false): void {
    const row = this.#rows.byId(id)
    if (row !== undefined) this.#rule(row, rule, temporary)
  }

  include(id: string): void {
    const row = this.#rows.byId(id)
    if (row !== undefined) this.#unrule(row)
  }

  /** How many agents are excluded temporarily. */
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

  /** @returns examples that no longer fit beside it: whoever stores examples may drop them. */
  learn(...examples: readonly TrainingExample[]): TrainingExample[] {
    return this.#learned.learn(...examples)
  }

  /** What the context feedback is gone (`contexts/clear`). */
  forgetContext(context: string): void {
    this.#learned.forgetContext(context)
  }

  /** What this index knows of an agent beyond its offer. */
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

/** Cosine of each vector with the request one, all of length 1; other lengths of vectors are another model's: 0. */
function nearnessOf(vectors: readonly Float32Array[], request: Float32Array): number[] {
  return vectors.map((vector) => {
    if (vector.length !== request.length) return 0
    let sum = 0
    for (let at = 0; at < vector.length; at += 1) sum += (vector[at] as number) * (request[at] as number)
    return sum
  })
}
