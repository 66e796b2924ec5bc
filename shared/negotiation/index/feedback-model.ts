import type { SimilarExamples } from '../score/knowledge.ts'
import {
  failedShare,
  knownShare,
  learnedEvidence,
  maturity,
  nearShare,
  similarity,
  similarityOfWords,
  supportersNeeded,
  trustIn,
  usedShare,
  usersMin,
  usualNearness,
  weightOf,
} from '../score/learning.ts'
import type { Query } from '../score/query.ts'
import { type TrainingExample, wordsKey } from '../score/training-example.ts'
import { ExampleWords } from './example-words.ts'
import { larger } from './larger.ts'
import {
  callersOf,
  hashOf,
  independentAmong,
  oldestOfLargestCaller,
  type StoredExample,
} from './stored-example.ts'
import { Support } from './support.ts'
import { cosineAt, VectorStore, vectorIn } from './vector-store.ts'

export interface FeedbackModelOptions {
  /** Clock in milliseconds since 1970. Examples lose half of their weight in 90 days. */
  now?: () => number
  /**
   * Maximum number of examples per agent. Default 400. Beyond it, the oldest example of the caller with the
   * most examples is dropped.
   */
  perAgentMax?: number
  /** Number of callers that must support what is learned for a request. Default 2. */
  callersMin?: number
  /**
   * Returns a function that tells how near a vector is to the agent's own texts; undefined if these have no vectors. `textsChanged`
   * reports changes.
   */
  ownTextsOf?: (agent: string) => ((vector: Float32Array) => number) | undefined
}

const perAgentMaxDefault = 400
const wordsPerExampleMax = 128
const noVector = -1
const refreshMs = 24 * 3600 * 1000

/** The examples of one agent. */
interface AgentExamples {
  agent: string
  /** Index of the agent in `LearnedValues`. */
  number: number
  /** Keyed by context, because a later example of a context replaces the earlier one. */
  byContext: Map<string, StoredExample>
  /** Number of independent good examples that were rated. */
  independent: number
  /** Number of independent examples of repeated use. */
  independentUses: number
}

/** The evidence of the examples for a query. Arrays are indexed by agent number. */
export interface LearnedValues {
  evidence: Float64Array
  known: Float64Array
}

/** The similarities of the last query, indexed by example. */
interface Similarities {
  of: Query
  vector: Float32Array | undefined
  version: number
  values: Float64Array
}

/**
 * Learns from training examples which requests an agent handles well: an agent gains evidence for a request if examples of it are
 * similar to the request and support each other. Stores only words and vectors, in bounded number, and forgets by context.
 */
export class FeedbackModel {
  readonly #agents = new Map<string, AgentExamples>()
  readonly #agentsOf = new Map<string, Set<string>>()
  readonly #words = new ExampleWords()
  readonly #vectors = new VectorStore()
  readonly #now: () => number
  readonly #perAgentMax: number
  readonly #callersMin: number
  readonly #ownTextsOf: NonNullable<FeedbackModelOptions['ownTextsOf']>
  readonly #freeExamples: number[] = []
  readonly #freeAgents: number[] = []
  #examples = 0
  #capacity = 0
  #agentCapacity = 0
  #weights = new Float64Array(64)
  /** How near each example is to its agent's own texts. */
  #nearOwn = new Float64Array(64)
  #asOf = 0
  #version = 0
  #last: Similarities | undefined

  constructor({
    now = Date.now,
    perAgentMax = perAgentMaxDefault,
    callersMin = 2,
    ownTextsOf = () => undefined,
  }: FeedbackModelOptions = {}) {
    this.#now = now
    this.#ownTextsOf = ownTextsOf
    this.#callersMin = callersMin
    this.#perAgentMax = perAgentMax
  }

  /** Number of stored examples. */
  get size(): number {
    return this.#examples
  }

  /** Number of callers that must support what is learned. */
  get callersMin(): number {
    return this.#callersMin
  }

  /** Grows with every change of an example, or of the texts that examples are compared with. */
  get version(): number {
    return this.#version
  }

  /** @returns examples that were dropped because they exceed the limit per agent; the store may remove them */
  learn(...examples: readonly TrainingExample[]): TrainingExample[] {
    const touched = new Set<AgentExamples>()
    const dropped: TrainingExample[] = []
    for (const example of examples) {
      const agent = this.#agents.get(example.agent) ?? this.#addAgent(example.agent)
      touched.add(agent)
      this.#remove(agent, example.context)
      this.#add(agent, example)
      while (agent.byContext.size > this.#perAgentMax) {
        const old = oldestOfLargestCaller(agent.byContext)
        this.#remove(agent, old.context)
        dropped.push(old)
      }
    }
    for (const agent of touched) this.#count(agent)
    return dropped
  }

  /** Removes the examples of a context for all agents. */
  forgetContext(context: string): void {
    for (const id of this.#agentsOf.get(context) ?? []) {
      const agent = this.#agents.get(id)
      if (agent === undefined) continue
      this.#remove(agent, context)
      this.#count(agent)
    }
  }

  forgetAgent(id: string): void {
    const agent = this.#agents.get(id)
    if (agent === undefined) return
    for (const context of agent.byContext.keys()) this.#remove(agent, context)
    this.#count(agent)
  }

  /** Compares the agent's examples with its own texts again, whose vectors have changed. */
  textsChanged(id: string): void {
    const agent = this.#agents.get(id)
    if (agent === undefined) return
    const nearOwn = this.#ownTextsOf(id)
    for (const example of agent.byContext.values())
      this.#nearOwn[example.number] = nearnessOf(example, nearOwn && vectorIn(example.vector), nearOwn)
    this.#version += 1
  }

  /** Whether the agent has examples. */
  knows(id: string): boolean {
    return this.#agents.has(id)
  }

  /** The examples of an agent. */
  examplesOf(id: string): TrainingExample[] {
    return [...(this.#agents.get(id)?.byContext.values() ?? [])]
  }

  /** Recomputes the decay of old examples, at most once a day. */
  refresh(): void {
    if (this.#now() - this.#asOf < refreshMs) return
    this.#asOf = this.#now()
    for (const { byContext } of this.#agents.values())
      for (const example of byContext.values()) this.#weights[example.number] = weightOf(example, this.#asOf)
    this.#version += 1
  }

  /** The agents with examples and their numbers. */
  numbered(): [agent: string, number: number][] {
    return Array.from(this.#agents.values(), ({ agent, number }) => [agent, number])
  }

  /** How far the examples of each agent are trusted (`trustIn`), reduced while there are few examples. */
  shares(): [agent: string, trust: number][] {
    const share = maturity(supportersNeeded(this.#examples))
    return Array.from(this.#agents.values(), ({ agent, independent, independentUses }) => [
      agent,
      share * trustIn(Math.max(independent, independentUses)),
    ])
  }

  /** The number of an agent; undefined if it has no examples. */
  numberOf(id: string): number | undefined {
    return this.#agents.get(id)?.number
  }

  /** The evidence of all agents with examples for a query, and how much is known about each. */
  valuesFor(query: Query, vector: Float32Array | undefined): LearnedValues {
    const { values } = this.#similarities(query, vector)
    const evidence = new Float64Array(this.#agentCapacity)
    const known = new Float64Array(this.#agentCapacity)
    const [good, bad, uses] = [new Support(), new Support(), new Support()]
    for (const { number, byContext, independent, independentUses } of this.#agents.values()) {
      for (const support of [good, bad, uses]) support.clear()
      let near = 0
      for (const example of byContext.values()) {
        const value = values[example.number] ?? 0
        if (value <= 0) continue
        if (example.outcome < 0) bad.add(value, example)
        else if (example.used === true) uses.add(value, example)
        else good.add(value, example)
        near += nearShare(value)
      }
      const needed = supportersNeeded(this.#examples)
      known[number] = knownShare(Math.max(independent, independentUses), near)
      const rated = trustIn(independent) * good.evidence(this.#callersMin, needed)
      const used = usedShare * trustIn(independentUses) * uses.evidence(usersMin, needed)
      const forIt = Math.max(rated, used)
      const against = failedShare * bad.evidence(this.#callersMin, needed)
      evidence[number] = learnedEvidence(forIt - against)
    }
    return { evidence, known }
  }

  /** Counts the similar examples of an agent, for the reasons of a decision. */
  similarTo(id: string, query: Query, vector: Float32Array | undefined): SimilarExamples {
    const { values } = this.#similarities(query, vector)
    const similar = [...(this.#agents.get(id)?.byContext.values() ?? [])].filter(
      ({ number }) => (values[number] ?? 0) > 0,
    )
    const uses = similar.filter(({ used }) => used === true)
    const good = similar.filter(({ outcome, used }) => outcome >= 0 && used !== true)
    const bad = similar.filter(({ outcome }) => outcome < 0)
    return {
      good: good.length,
      bad: bad.length,
      callers: { good: callersOf(good), bad: callersOf(bad) },
      users: callersOf(uses),
    }
  }

  /** Computed once per query. */
  #similarities(query: Query, vector: Float32Array | undefined): Similarities {
    const { version } = this
    if (this.#last?.of === query && this.#last.vector === vector && this.#last.version === version)
      return this.#last
    const values = this.#words.cosines(query, this.#capacity)
    const cosines = vector === undefined ? undefined : this.#vectors.cosines(vector)
    for (const { byContext } of this.#agents.values()) {
      for (const { number, slot } of byContext.values()) {
        const words = values[number] ?? 0
        const near =
          cosines === undefined || slot === noVector
            ? similarityOfWords(words)
            : similarity(words, cosineAt(cosines, slot), this.#nearOwn[number] ?? usualNearness)
        values[number] = near * (this.#weights[number] ?? 0)
      }
    }
    this.#last = { of: query, vector, version, values }
    return this.#last
  }

  #add(agent: AgentExamples, given: TrainingExample): void {
    // Earlier versions stored pairs of words too.
    const words = Object.fromEntries(
      Object.entries(given.words)
        .filter(([stem]) => !stem.includes(' '))
        .slice(0, wordsPerExampleMax),
    )
    const number = this.#freeExamples.pop() ?? this.#capacity++
    if (number >= this.#weights.length) {
      this.#weights = larger(this.#weights)
      this.#nearOwn = larger(this.#nearOwn)
    }
    const vector = vectorIn(given.vector)
    const slot = vector === undefined ? noVector : this.#vectors.add(vector)
    agent.byContext.set(given.context, {
      ...given,
      words,
      number,
      slot,
      callerNumber: hashOf(given.caller),
      wordsNumber: hashOf(wordsKey(words)),
    })
    this.#weights[number] = weightOf(given, this.#now())
    this.#nearOwn[number] = nearnessOf(given, vector, this.#ownTextsOf(agent.agent))
    this.#words.add(number, Object.keys(words))
    const agents = this.#agentsOf.get(given.context) ?? new Set()
    this.#agentsOf.set(given.context, agents.add(agent.agent))
    this.#examples += 1
    this.#version += 1
  }

  #remove(agent: AgentExamples, context: string): void {
    const example = agent.byContext.get(context)
    if (example === undefined) return
    agent.byContext.delete(context)
    this.#words.remove(example.number)
    if (example.slot !== noVector) this.#vectors.remove(example.slot)
    this.#freeExamples.push(example.number)
    const agents = this.#agentsOf.get(context)
    agents?.delete(agent.agent)
    if (agents?.size === 0) this.#agentsOf.delete(context)
    this.#examples -= 1
    this.#version += 1
  }

  #addAgent(id: string): AgentExamples {
    const number = this.#freeAgents.pop() ?? this.#agentCapacity++
    const agent: AgentExamples = {
      agent: id,
      number,
      byContext: new Map(),
      independent: 0,
      independentUses: 0,
    }
    this.#agents.set(id, agent)
    return agent
  }

  /** Recomputes how much is known about the agent, and removes it without examples. */
  #count(agent: AgentExamples): void {
    this.#version += 1
    if (agent.byContext.size === 0) {
      if (this.#agents.delete(agent.agent)) this.#freeAgents.push(agent.number)
      return
    }
    const good = [...agent.byContext.values()].filter(({ outcome }) => outcome > 0)
    const isUse = ({ used }: StoredExample) => used === true
    agent.independent = independentAmong(
      good.filter((one) => !isUse(one)),
      this.#callersMin,
    )
    agent.independentUses = independentAmong(good.filter(isUse), usersMin)
  }
}

/** How near an example is to its agent's own texts. A failure counts in full, whatever these say. */
const nearnessOf = (
  { outcome }: TrainingExample,
  vector: Float32Array | undefined,
  nearOwn: ((vector: Float32Array) => number) | undefined,
): number => (outcome < 0 || vector === undefined || nearOwn === undefined ? usualNearness : nearOwn(vector))
