import {
  featureEvidence,
  lessonRarity,
  pastEvidence,
  type Taught,
  taughtBy,
} from '../../shared/negotiation/learning.ts'
import type { Lesson } from '../../shared/negotiation/lesson.ts'
import type { Query } from '../../shared/negotiation/query.ts'
import { likeness } from '../../shared/negotiation/words/meaning.ts'

export interface LearnedOptions {
  /** Milliseconds since 1970; lessons lose half of their weight in 90 days. */
  now?: () => number
  /** Lessons kept for one agent; 400 by default. Of more, the oldest of whoever gave the most go. */
  perAgentMax?: number
}

const perAgentMaxDefault = 400
const featuresPerLessonMax = 128
const refreshMs = 24 * 3600 * 1000

interface Pupil {
  /** By context: a later lesson of the same context takes the place of the earlier. */
  lessons: Map<string, Lesson>
  taught: Taught
  asOf: number
  /** Length of its usual words by their rarity, and how much was learned by all when it was read. */
  length: number
  readAt: number
  /** Room for the ranking under way. */
  sum: number
  product: number
}

const nobody: ReadonlyMap<string, number> = new Map()

/** The length of usual words is read again once the weight of all lessons has changed by so much. */
const staleShare = 0.05

/** What past work taught about every agent: counted words alone, bounded, and forgotten context by context. */
export class Learned {
  readonly #pupils = new Map<string, Pupil>()
  readonly #agentsOf = new Map<string, Set<string>>()
  /** Feature → agent → weight of its lessons that hold it. */
  readonly #held = new Map<string, Map<string, number>>()
  readonly #shares = new Map<string, number>()
  readonly #now: () => number
  readonly #perAgentMax: number
  #weight = 0
  /** What the last text asked for was read as. */
  #asked: { of: Query | undefined; weight: number; length: number } = { of: undefined, weight: 0, length: 0 }

  constructor({ now = Date.now, perAgentMax = perAgentMaxDefault }: LearnedOptions = {}) {
    this.#now = now
    this.#perAgentMax = perAgentMax
  }

  /** How many lessons are kept. */
  get size(): number {
    let size = 0
    for (const { lessons } of this.#pupils.values()) size += lessons.size
    return size
  }

  /** @returns lessons that no longer fit beside it, of whoever gave the most: whoever stores lessons may drop them. */
  learn(...lessons: readonly Lesson[]): Lesson[] {
    const dropped: Lesson[] = []
    const touched = new Set<string>()
    for (const lesson of lessons) {
      touched.add(lesson.agent)
      dropped.push(...this.#keep(lesson))
    }
    for (const agent of touched) this.#teach(agent)
    return dropped
  }

  /** What the context taught is gone, for every agent. */
  forgetContext(context: string): void {
    for (const agent of this.#agentsOf.get(context) ?? []) {
      this.#pupils.get(agent)?.lessons.delete(context)
      this.#teach(agent)
    }
    this.#agentsOf.delete(context)
  }

  forgetAgent(agent: string): void {
    for (const context of this.#pupils.get(agent)?.lessons.keys() ?? []) this.#unlink(context, agent)
    this.#unteach(agent)
    this.#pupils.delete(agent)
  }

  knows(agent: string): boolean {
    return this.#pupils.has(agent)
  }

  /** How much the agent's past work speaks for a feature of a text. */
  evidence(agent: string, feature: string): number {
    const pupil = this.#pupils.get(agent)
    const held = pupil?.taught.features.get(feature)
    if (pupil === undefined || held === undefined) return 0
    return featureEvidence(feature, held, pupil.taught.weight, this.#shareOf(feature))
  }

  /** How like the text is to all that the agent did well, as a share of what its words could say. */
  past(agent: string, query: Query): number {
    const pupil = this.#pupils.get(agent)
    if (pupil === undefined) return 0
    let product = 0
    for (const stem of wordsOf(query)) {
      const held = pupil.taught.usual.get(stem)
      if (held !== undefined) product += held * this.#rarityOf(stem) ** 2
    }
    return this.#past(pupil, query, product)
  }

  /** Tells of every agent with lessons no less than what its past says, `evidence` of the features and `past`. */
  forEach(query: Query, tell: (agent: string, evidence: number, past: number) => void): void {
    for (const pupil of this.#pupils.values()) {
      pupil.sum = 0
      pupil.product = 0
    }
    for (const feature of query.features) {
      const share = this.#shareOf(feature)
      for (const [agent, held] of this.#held.get(feature) ?? nobody) {
        const pupil = this.#pupils.get(agent) as Pupil
        if (held > 0) pupil.sum += featureEvidence(feature, held, pupil.taught.weight, share)
      }
    }
    for (const stem of wordsOf(query)) {
      const squared = this.#rarityOf(stem) ** 2
      for (const agent of (this.#held.get(stem) ?? nobody).keys()) {
        const pupil = this.#pupils.get(agent) as Pupil
        pupil.product += (pupil.taught.usual.get(stem) ?? 0) * squared
      }
    }
    for (const [agent, pupil] of this.#pupils) tell(agent, pupil.sum, this.#past(pupil, query, pupil.product))
  }

  #past(pupil: Pupil, query: Query, product: number): number {
    const { meaning, weight } = pupil.taught
    const lengths = this.#lengthOf(pupil) * this.#askedLength(query)
    const words = lengths === 0 ? 0 : Math.min(1, Math.max(0, product / lengths))
    return pastEvidence(words, likeness(meaning, query.meaning), weight)
  }

  /** Lets old lessons fade; at most once a day for an agent. */
  refresh(): void {
    const now = this.#now()
    for (const [agent, { asOf }] of this.#pupils) if (now - asOf > refreshMs) this.#teach(agent)
  }

  #shareOf(feature: string): number {
    return ((this.#shares.get(feature) ?? 0) + 0.5) / (this.#weight + 1)
  }

  #rarityOf(stem: string): number {
    return this.#held.has(stem) ? lessonRarity(this.#shareOf(stem)) : 0
  }

  #lengthOf(pupil: Pupil): number {
    if (Math.abs(this.#weight - pupil.readAt) > staleShare * pupil.readAt) {
      let squares = 0
      for (const [stem, held] of pupil.taught.usual) squares += (held * this.#rarityOf(stem)) ** 2
      pupil.length = Math.sqrt(squares)
      pupil.readAt = this.#weight
    }
    return pupil.length
  }

  #askedLength(query: Query): number {
    const { of, weight, length } = this.#asked
    if (of === query && weight === this.#weight) return length
    let squares = 0
    for (const stem of wordsOf(query)) squares += this.#rarityOf(stem) ** 2
    this.#asked = { of: query, weight: this.#weight, length: Math.sqrt(squares) }
    return this.#asked.length
  }

  #keep(lesson: Lesson): Lesson[] {
    const { agent, context } = lesson
    const pupil = this.#pupils.get(agent) ?? {
      lessons: new Map(),
      taught: nothing,
      asOf: 0,
      length: 0,
      readAt: 0,
      sum: 0,
      product: 0,
    }
    this.#pupils.set(agent, pupil)
    const words = Object.fromEntries(Object.entries(lesson.words).slice(0, featuresPerLessonMax))
    pupil.lessons.delete(context)
    pupil.lessons.set(context, { ...lesson, words })
    const agents = this.#agentsOf.get(context) ?? new Set()
    this.#agentsOf.set(context, agents.add(agent))
    const dropped: Lesson[] = []
    while (pupil.lessons.size > this.#perAgentMax) {
      const old = oldestOfMost(pupil.lessons)
      pupil.lessons.delete(old.context)
      this.#unlink(old.context, agent)
      dropped.push(old)
    }
    return dropped
  }

  #unlink(context: string, agent: string): void {
    const agents = this.#agentsOf.get(context)
    agents?.delete(agent)
    if (agents?.size === 0) this.#agentsOf.delete(context)
  }

  #teach(agent: string): void {
    this.#unteach(agent)
    const pupil = this.#pupils.get(agent)
    if (pupil === undefined) return
    if (pupil.lessons.size === 0) {
      this.#pupils.delete(agent)
      return
    }
    pupil.asOf = this.#now()
    pupil.taught = taughtBy([...pupil.lessons.values()], pupil.asOf)
    pupil.readAt = 0
    this.#count(agent, pupil.taught, 1)
  }

  #unteach(agent: string): void {
    const pupil = this.#pupils.get(agent)
    if (pupil === undefined) return
    this.#count(agent, pupil.taught, -1)
    pupil.taught = nothing
  }

  #count(agent: string, { weight, features }: Taught, sign: 1 | -1): void {
    this.#weight = Math.max(0, this.#weight + sign * weight)
    for (const [feature, held] of features) {
      const share = (this.#shares.get(feature) ?? 0) + sign * Math.max(0, held)
      const holders = this.#held.get(feature) ?? new Map<string, number>()
      if (sign === 1) holders.set(agent, held)
      else holders.delete(agent)
      if (holders.size === 0) {
        this.#held.delete(feature)
        this.#shares.delete(feature)
      } else {
        this.#held.set(feature, holders)
        this.#shares.set(feature, Math.max(0, share))
      }
    }
  }
}

/** The oldest lesson of the caller who gave the most: nobody pushes out what others taught. */
function oldestOfMost(lessons: ReadonlyMap<string, Lesson>): Lesson {
  const counts = new Map<string, number>()
  for (const { caller } of lessons.values()) counts.set(caller, (counts.get(caller) ?? 0) + 1)
  const most = Math.max(...counts.values())
  for (const lesson of lessons.values()) if (counts.get(lesson.caller) === most) return lesson
  throw new Error('there are no lessons')
}

const nothing: Taught = { weight: 0, features: new Map(), usual: new Map(), meaning: undefined }

function* wordsOf({ terms, common }: Query): Iterable<string> {
  for (const { stem } of terms) yield stem
  yield* common
}
