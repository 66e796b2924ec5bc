import {
  featureEvidence,
  featureRarity,
  featureSharesOf,
  feedbackOf,
  feedbackShareOf,
} from '../score/learning.ts'
import type { Unit } from '../score/profile.ts'
import type { Query } from '../score/query.ts'
import type { TrainingExample } from '../score/training-example.ts'
import { weightedMeaning } from '../words/meaning.ts'
import { isStopWord } from '../words/split.ts'
import {
  type AgentModel,
  dropOldestOfLargestCaller,
  feedbackShareOfModel,
  isBoosted,
  newAgentModel,
  nothing,
} from './agent-model.ts'
import { AgentValues, boosted, notBoosted, type QueryTexts } from './agent-values.ts'
import { FeaturePosting } from './feature-posting.ts'

export interface FeedbackModelOptions {
  /** Clock in milliseconds since 1970. Examples lose half of their weight in 90 days. */
  now?: () => number
  /**
   * Maximum number of examples per agent. Default 400. Beyond it, the oldest example of the caller with the
   * most examples is dropped.
   */
  perAgentMax?: number
  /** The unit of an agent as a whole. The agent's own words count as its first example. */
  ownOf?: (agent: string) => Unit | undefined
  /** Number of callers with positive examples needed to raise an agent's score. Default 2. */
  callersMin?: number
}

const perAgentMaxDefault = 400
const featuresPerExampleMax = 128
/** How fast feedback loses weight if the examples of an agent that is not boosted fit a text better. */
const doubtPower = 3.21
const refreshMs = 24 * 3600 * 1000

/** Typical texts are recomputed when the total weight of examples has changed by this fraction. */
const staleShare = 0.05

/** The sums for the last query. */
interface QuerySums extends QueryTexts {
  of: Query
  version: number
  /** The mass for which `AgentValues.bounds` are valid. */
  mass?: number
  /** The maximum feedback of a boosted agent and the weight of feedback for a given mass. */
  most?: { mass: number; value: number; share: number; isHidden: ((agent: string) => boolean) | undefined }
}

/**
 * Learns from training examples which texts an agent handles well. Stores only counted words, in bounded
 * number, and forgets by context.
 */
export class FeedbackModel {
  readonly #agents = new Map<string, AgentModel>()
  readonly #agentsOf = new Map<string, Set<string>>()
  readonly #postings = new Map<string, FeaturePosting>()
  readonly #values = new AgentValues()
  /** Indexed by agent number. */
  readonly #byNumber: (AgentModel | undefined)[] = []
  readonly #now: () => number
  readonly #perAgentMax: number
  readonly #ownOf: (agent: string) => Unit | undefined
  readonly #callersMin: number
  #weight = 0
  #version = 0
  /** The version for which the typical texts of all agents have been read. */
  #typicalVersion = 0
  #querySums: QuerySums | undefined

  constructor({
    now = Date.now,
    perAgentMax = perAgentMaxDefault,
    ownOf,
    callersMin = 2,
  }: FeedbackModelOptions = {}) {
    this.#now = now
    this.#callersMin = callersMin
    this.#perAgentMax = perAgentMax
    this.#ownOf = ownOf ?? (() => undefined)
  }

  /** Number of stored examples. */
  get size(): number {
    let size = 0
    for (const { examples } of this.#agents.values()) size += examples.size
    return size
  }

  /** @returns examples that were dropped because they exceed the limit per agent; the store may remove them */
  learn(...examples: readonly TrainingExample[]): TrainingExample[] {
    const dropped: TrainingExample[] = []
    const touched = new Set<string>()
    for (const example of examples) {
      touched.add(example.agent)
      dropped.push(...this.#keep(example))
    }
    for (const agent of touched) this.#update(agent)
    return dropped
  }

  /** Removes the examples of a context for all agents. */
  forgetContext(context: string): void {
    for (const agent of this.#agentsOf.get(context) ?? []) {
      this.#agents.get(agent)?.examples.delete(context)
      this.#update(agent)
    }
    this.#agentsOf.delete(context)
  }

  forgetAgent(agent: string): void {
    for (const context of this.#agents.get(agent)?.examples.keys() ?? []) this.#unlink(context, agent)
    this.#retract(agent)
    this.#removeAgent(agent)
  }

  /** Recomputes the agent if its own words have changed. */
  refreshOwn(agent: string): void {
    const model = this.#agents.get(agent)
    if (model !== undefined && model.own !== this.#ownOf(agent)) this.#update(agent)
  }

  knows(agent: string): boolean {
    return this.#agents.has(agent)
  }

  /** Fraction of the knowledge about the agent that comes from examples, 0..1. */
  known(agent: string): number {
    const model = this.#agents.get(agent)
    return model === undefined ? 0 : feedbackShareOfModel(model)
  }

  /** Whether an example of the agent contains the feature. */
  isInExamples(agent: string, feature: string): boolean {
    return (this.#agents.get(agent)?.feedback.features.get(feature) ?? 0) !== 0
  }

  /** Evidence from the agent's examples for a feature of a text. */
  evidence(agent: string, feature: string): number {
    const model = this.#agents.get(agent)
    if (model === undefined) return 0
    const { features, weight } = model.feedback
    const held = features.get(feature) ?? 0
    const own = model.own?.impacts.get(feature) ?? 0
    if ((held === 0 && own === 0) || (held >= 0 && !model.boosted)) return 0
    return featureEvidence(feature, { held, own, weight, share: this.#shareOf(this.#postings.get(feature)) })
  }

  /** Similarity of the text to the agent's positive examples, as a fraction of the text's mass. */
  past(agent: string, query: Query): number {
    const sums = this.#sumsFor(query)
    const model = this.#agents.get(agent)
    return model?.boosted === true ? this.#values.past(model.number, sums) : 0
  }

  /** The maximum feedback of any agent for the text. @param isHidden whether to leave an agent out */
  most(query: Query, mass: number, isHidden?: (agent: string) => boolean): number {
    return this.#agents.size === 0 ? 0 : this.#mostOf(query, mass, isHidden).value
  }

  /**
   * The weight of feedback for the text, 0..1. Lower if the examples of an agent that is not boosted fit
   * the text better than those of any boosted agent, because the text is then untypical of the boosted agents.
   */
  share(query: Query, mass: number, isHidden?: (agent: string) => boolean): number {
    return this.#agents.size === 0 ? 1 : this.#mostOf(query, mass, isHidden).share
  }

  /** Grows with every change of an example or an agent. */
  get version(): number {
    return this.#version
  }

  /** The highest agent number plus one. */
  get capacity(): number {
    return this.#values.size
  }

  /** The agents with examples and their numbers. */
  numbered(): [agent: string, number: number][] {
    return Array.from(this.#agents.values(), ({ agent, number }) => [agent, number])
  }

  /**
   * Calls `visit` for the number of every boosted agent with an upper bound on its feedback for the text and with
   * `known`.
   * @param share the weight of feedback for the text
   */
  forEach(
    query: Query,
    mass: number,
    share: number,
    visit: (agent: number, most: number, known: number) => void,
  ): void {
    if (this.#agents.size === 0) return
    const { kinds, bounds, weights, size } = this.#boundsFor(this.#sumsFor(query), mass)
    for (let number = 0; number < size; number += 1) {
      if (kinds[number] === boosted)
        visit(number, share * (bounds[number] ?? 0), feedbackShareOf(weights[number] ?? 0))
    }
  }

  #mostOf(query: Query, mass: number, isHidden?: (agent: string) => boolean): NonNullable<QuerySums['most']> {
    const sums = this.#sumsFor(query)
    if (sums.most?.mass === mass && sums.most.isHidden === isHidden) return sums.most
    const isHiddenNumber = isHidden && ((number: number) => isHidden(this.#byNumber[number]?.agent ?? ''))
    const [others, value] = this.#boundsFor(sums, mass).highestBounds(isHiddenNumber)
    const share = others <= value ? 1 : (value / others) ** doubtPower
    sums.most = { mass, value, share, isHidden }
    return sums.most
  }

  /** Recomputes the decay of old examples, at most once a day per agent. */
  refresh(): void {
    const now = this.#now()
    for (const [agent, { asOf }] of this.#agents) if (now - asOf > refreshMs) this.#update(agent)
  }

  /** Computes the sums of all agents once per query. */
  #sumsFor(query: Query): QuerySums {
    const before = this.#querySums
    if (before?.of === query && before.version === this.#version) return before
    this.#readAllTypical()
    this.#values.startQuery()
    for (const feature of query.features) this.#addEvidence(feature)
    let squares = 0
    for (const [feature, share] of featureSharesOf(query)) {
      // A feature that occurs in no example does not count towards the similarity.
      if (!this.#postings.has(feature)) continue
      const rarity = this.#rarityOf(feature)
      squares += (share * rarity) ** 2
      this.#addProducts(feature, share * rarity * rarity)
    }
    const weighted = query.terms.map(({ stem }) => [stem, this.#rarityOf(stem)] as const)
    this.#querySums = {
      of: query,
      version: this.#version,
      length: Math.sqrt(squares),
      meaning: weightedMeaning(weighted),
    }
    return this.#querySums
  }

  #addEvidence(feature: string): void {
    const posting = this.#postings.get(feature)
    if (posting === undefined) return
    const share = this.#shareOf(posting)
    const { sums, weights } = this.#values
    for (let at = 0; at < posting.length; at += 1) {
      const held = posting.held[at] ?? 0
      const own = posting.own[at] ?? 0
      if (held < 0) continue
      const model = posting.agents[at] ?? 0
      const weight = weights[model] ?? 0
      sums[model] = (sums[model] ?? 0) + featureEvidence(feature, { held, own, weight, share })
    }
  }

  #addProducts(feature: string, factor: number): void {
    const posting = this.#postings.get(feature)
    if (posting === undefined || factor === 0) return
    const { agents, typical, length } = posting
    const { products } = this.#values
    for (let at = 0; at < length; at += 1) {
      const model = agents[at] ?? 0
      products[model] = (products[model] ?? 0) + (typical[at] ?? 0) * factor
    }
  }

  /** Computes the upper bounds of all agents once per query and mass. */
  #boundsFor(sums: QuerySums, mass: number): AgentValues {
    if (sums.mass !== mass) this.#values.setBounds(sums, mass)
    sums.mass = mass
    return this.#values
  }

  #shareOf(posting: FeaturePosting | undefined): number {
    return ((posting?.share ?? 0) + 0.5) / (this.#weight + 1)
  }

  /** How well a feature distinguishes agents, judged by their examples and own words. */
  #rarityOf(feature: string): number {
    const posting = this.#postings.get(feature)
    const holders = posting === undefined ? 0 : posting.share + posting.owners
    return featureRarity((holders + 0.5) / (this.#weight + this.#agents.size + 1))
  }

  #readAllTypical(): void {
    if (this.#typicalVersion === this.#version) return
    this.#typicalVersion = this.#version
    for (const model of this.#agents.values()) this.#readTypical(model)
  }

  #readTypical(model: AgentModel): void {
    if (Math.abs(this.#weight - model.readAt) <= staleShare * model.readAt) return
    let squares = 0
    const stems: [string, number][] = []
    for (const [feature, held] of model.feedback.typical) {
      const value = held * this.#rarityOf(feature)
      squares += value * value
      if (!isStopWord(feature)) stems.push([feature, value])
    }
    this.#values.setTypical(model.number, Math.sqrt(squares), weightedMeaning(stems))
    model.readAt = this.#weight
  }

  #keep(example: TrainingExample): TrainingExample[] {
    const { agent, context } = example
    const model = this.#agents.get(agent) ?? this.#addAgent(agent)
    const words = Object.fromEntries(Object.entries(example.words).slice(0, featuresPerExampleMax))
    model.examples.delete(context)
    model.examples.set(context, { ...example, words })
    const agents = this.#agentsOf.get(context) ?? new Set()
    this.#agentsOf.set(context, agents.add(agent))
    const dropped: TrainingExample[] = []
    while (model.examples.size > this.#perAgentMax) {
      const old = dropOldestOfLargestCaller(model.examples)
      this.#unlink(old.context, agent)
      dropped.push(old)
    }
    return dropped
  }

  #addAgent(agent: string): AgentModel {
    const number = this.#values.add()
    const model = newAgentModel(agent, number, this.#ownOf(agent))
    this.#agents.set(agent, model)
    this.#byNumber[number] = model
    return model
  }

  #removeAgent(agent: string): void {
    const model = this.#agents.get(agent)
    if (model === undefined) return
    this.#values.remove(model.number)
    this.#byNumber[model.number] = undefined
    this.#agents.delete(agent)
    this.#version += 1
  }

  #unlink(context: string, agent: string): void {
    const agents = this.#agentsOf.get(context)
    agents?.delete(agent)
    if (agents?.size === 0) this.#agentsOf.delete(context)
  }

  #update(agent: string): void {
    this.#retract(agent)
    const model = this.#agents.get(agent)
    if (model === undefined) return
    if (model.examples.size === 0) {
      this.#removeAgent(agent)
      return
    }
    model.asOf = this.#now()
    const examples = [...model.examples.values()]
    model.boosted = isBoosted(examples, this.#callersMin)
    model.own = this.#ownOf(agent) ?? model.own
    model.feedback = feedbackOf(examples, model.asOf, model.own)
    model.readAt = 0
    this.#values.weights[model.number] = model.feedback.weight
    this.#values.kinds[model.number] = model.boosted ? boosted : notBoosted
    this.#count(model, 1)
  }

  #retract(agent: string): void {
    const model = this.#agents.get(agent)
    if (model === undefined) return
    this.#count(model, -1)
    model.feedback = nothing
  }

  #count(model: AgentModel, sign: 1 | -1): void {
    const { weight, features, typical } = model.feedback
    this.#version += 1
    this.#weight = Math.max(0, this.#weight + sign * weight)
    for (const [feature, about] of typical) {
      const posting = this.#postings.get(feature) ?? new FeaturePosting()
      if (sign === 1) {
        const own = model.own?.impacts.get(feature) ?? 0
        posting.add(model.number, features.get(feature) ?? 0, own, about)
        this.#postings.set(feature, posting)
      } else {
        posting.remove(model.number)
        if (posting.length === 0) this.#postings.delete(feature)
      }
    }
  }
}
