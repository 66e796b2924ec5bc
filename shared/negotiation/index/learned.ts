import { lessonsMost } from '../score/evidence.ts'
import { featureEvidence, knownBy, lessonRarity, lookOf, pastEvidence, taughtBy } from '../score/learning.ts'
import type { Unit } from '../score/profile.ts'
import type { Query } from '../score/query.ts'
import type { TrainingExample } from '../score/training-example.ts'
import { likeness, type Meaning, weightedMeaning } from '../words/meaning.ts'
import { isStopWord } from '../words/split.ts'
import { LessonPosting, larger } from './lesson-posting.ts'
import { dropOldestOfMost, newPupil, nothing, type Pupil } from './pupil.ts'

export interface LearnedOptions {
  /** Milliseconds since 1970; lessons lose half of their weight in 90 days. */
  now?: () => number
  /** Lessons kept for one agent; 400 by default. Of more, the oldest of whoever gave the most go. */
  perAgentMax?: number
  /** An agent as a whole by its own words: they are its first lesson. */
  ownOf?: (agent: string) => Unit | undefined
  /** Callers whose well-rated contexts an agent needs before these lift it; 2 by default. */
  callersMin?: number
}

const perAgentMaxDefault = 400
const featuresPerLessonMax = 128
/** Well-rated contexts that an agent needs before they lift it: fewer teach what one text happened to say. */
const contextsMin = 5
/** How fast lessons lose weight where examples of an agent with too few of them fit a text better. */
const doubtPower = 3.21
const refreshMs = 24 * 3600 * 1000

/** The look of usual texts is read again once the weight of all lessons has changed by so much. */
const staleShare = 0.05

/** A text as it was last asked for. */
interface Asked {
  of: Query
  version: number
  length: number
  meaning: Meaning | undefined
  /** For a mass, the most that lessons say. */
  most?: { mass: number; value: number; share: number }
}

/** What past work taught about every agent: counted words alone, bounded, and forgotten context by context. */
export class Learned {
  readonly #pupils = new Map<string, Pupil>()
  readonly #agentsOf = new Map<string, Set<string>>()
  readonly #postings = new Map<string, LessonPosting>()
  readonly #freeNumbers: number[] = []
  #numbers = 0
  /** By number of the agent: weight of its lessons, and room for the text under way. */
  #weights = new Float64Array(64)
  #sums = new Float64Array(64)
  #products = new Float64Array(64)
  readonly #now: () => number
  readonly #perAgentMax: number
  readonly #ownOf: (agent: string) => Unit | undefined
  readonly #callersMin: number
  #weight = 0
  #version = 0
  #asked: Asked | undefined

  constructor({
    now = Date.now,
    perAgentMax = perAgentMaxDefault,
    ownOf,
    callersMin = 2,
  }: LearnedOptions = {}) {
    this.#now = now
    this.#callersMin = callersMin
    this.#perAgentMax = perAgentMax
    this.#ownOf = ownOf ?? (() => undefined)
  }

  /** How many lessons are kept. */
  get size(): number {
    let size = 0
    for (const { lessons } of this.#pupils.values()) size += lessons.size
    return size
  }

  /** @returns lessons that no longer fit beside it, of whoever gave the most: whoever stores lessons may drop them. */
  learn(...lessons: readonly TrainingExample[]): TrainingExample[] {
    const dropped: TrainingExample[] = []
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
    this.#dismiss(agent)
  }

  /** The agent's own words may be others now. */
  reread(agent: string): void {
    const pupil = this.#pupils.get(agent)
    if (pupil !== undefined && pupil.own !== this.#ownOf(agent)) this.#teach(agent)
  }

  knows(agent: string): boolean {
    return this.#pupils.has(agent)
  }

  /** How much of what is known about the agent its lessons tell, 0..1. */
  known(agent: string): number {
    const pupil = this.#pupils.get(agent)
    return pupil === undefined ? 0 : knownOf(pupil)
  }

  /** Whether a lesson of the agent holds the feature. */
  lessonsHold(agent: string, feature: string): boolean {
    return (this.#pupils.get(agent)?.taught.features.get(feature) ?? 0) !== 0
  }

  /** How much the agent's past work speaks for a feature of a text. */
  evidence(agent: string, feature: string): number {
    const pupil = this.#pupils.get(agent)
    if (pupil === undefined) return 0
    const { features, weight } = pupil.taught
    const held = features.get(feature) ?? 0
    const own = pupil.own?.impacts.get(feature) ?? 0
    if ((held === 0 && own === 0) || (held >= 0 && !pupil.lifted)) return 0
    return featureEvidence(feature, { held, own, weight, share: this.#shareOf(this.#postings.get(feature)) })
  }

  /** How like the text is to all that the agent did well, as a share of what its words could say. */
  past(agent: string, query: Query): number {
    const asked = this.#ask(query)
    const pupil = this.#pupils.get(agent)
    return pupil?.lifted === true ? this.#past(pupil, asked) : 0
  }

  /** The most that the lessons of any agent say for the text. */
  most(query: Query, mass: number): number {
    return this.#pupils.size === 0 ? 0 : this.#mostOf(query, mass).value
  }

  /**
   * What of the lessons counts for the text: examples of an agent that has too few of them to be lifted do not speak for it,
   * but where they fit the text better than those of any other agent, it is not one of the usual texts of the others.
   */
  share(query: Query, mass: number): number {
    return this.#pupils.size === 0 ? 1 : this.#mostOf(query, mass).share
  }

  /** Tells of every agent with lessons the most that these can say for the text, and `known`. */
  forEach(query: Query, mass: number, tell: (agent: string, most: number, known: number) => void): void {
    if (this.#pupils.size === 0) return
    const { share } = this.#mostOf(query, mass)
    const asked = this.#ask(query)
    for (const pupil of this.#pupils.values()) {
      if (pupil.lifted) tell(pupil.agent, share * this.#saidOf(pupil, asked, mass), knownOf(pupil))
    }
  }

  #mostOf(query: Query, mass: number): NonNullable<Asked['most']> {
    const asked = this.#ask(query)
    if (asked.most?.mass === mass) return asked.most
    let lifted = 0
    let others = 0
    for (const pupil of this.#pupils.values()) {
      const said = this.#saidOf(pupil, asked, mass)
      if (pupil.lifted) lifted = Math.max(lifted, said)
      else others = Math.max(others, said)
    }
    const share = others <= lifted ? 1 : (lifted / others) ** doubtPower
    asked.most = { mass, value: lifted, share }
    return asked.most
  }

  /** Lets old lessons fade; at most once a day for an agent. */
  refresh(): void {
    const now = this.#now()
    for (const [agent, { asOf }] of this.#pupils) if (now - asOf > refreshMs) this.#teach(agent)
  }

  /** Sums up for every agent what a text has in common with its lessons, once a text. */
  #ask(query: Query): Asked {
    const before = this.#asked
    if (before?.of === query && before.version === this.#version) return before
    this.#sums.fill(0, 0, this.#numbers)
    this.#products.fill(0, 0, this.#numbers)
    for (const feature of query.features) this.#addEvidence(feature)
    let squares = 0
    for (const [feature, share] of lookOf(query)) {
      // What nobody with lessons ever said is no part of how usual texts look.
      if (!this.#postings.has(feature)) continue
      const rarity = this.#rarityOf(feature)
      squares += (share * rarity) ** 2
      this.#addProducts(feature, share * rarity * rarity)
    }
    const weighted = query.terms.map(({ stem }) => [stem, this.#rarityOf(stem)] as const)
    this.#asked = {
      of: query,
      version: this.#version,
      length: Math.sqrt(squares),
      meaning: weightedMeaning(weighted),
    }
    return this.#asked
  }

  #addEvidence(feature: string): void {
    const posting = this.#postings.get(feature)
    if (posting === undefined) return
    const share = this.#shareOf(posting)
    const sums = this.#sums
    for (let at = 0; at < posting.length; at += 1) {
      const held = posting.held[at] as number
      const own = posting.own[at] as number
      if (held < 0) continue
      const pupil = posting.pupils[at] as number
      const weight = this.#weights[pupil] as number
      sums[pupil] = (sums[pupil] as number) + featureEvidence(feature, { held, own, weight, share })
    }
  }

  #addProducts(feature: string, factor: number): void {
    const posting = this.#postings.get(feature)
    if (posting === undefined || factor === 0) return
    const { pupils, usual, length } = posting
    const products = this.#products
    for (let at = 0; at < length; at += 1) {
      const pupil = pupils[at] as number
      products[pupil] = (products[pupil] as number) + (usual[at] as number) * factor
    }
  }

  #saidOf(pupil: Pupil, asked: Asked, mass: number): number {
    return lessonsMost(this.#sums[pupil.number] as number, this.#past(pupil, asked), mass)
  }

  #past(pupil: Pupil, { length, meaning }: Asked): number {
    this.#readUsual(pupil)
    const lengths = pupil.length * length
    const product = this.#products[pupil.number] as number
    const words = lengths === 0 ? 0 : Math.min(1, Math.max(0, product / lengths))
    return pastEvidence(words, likeness(pupil.meaning, meaning), pupil.taught.weight)
  }

  #shareOf(posting: LessonPosting | undefined): number {
    return ((posting?.share ?? 0) + 0.5) / (this.#weight + 1)
  }

  /** How much a word tells apart what agents with lessons do, by lessons and by their own words. */
  #rarityOf(feature: string): number {
    const posting = this.#postings.get(feature)
    const holders = posting === undefined ? 0 : posting.share + posting.owners
    return lessonRarity((holders + 0.5) / (this.#weight + this.#pupils.size + 1))
  }

  #readUsual(pupil: Pupil): void {
    if (Math.abs(this.#weight - pupil.readAt) <= staleShare * pupil.readAt) return
    let squares = 0
    const stems: [string, number][] = []
    for (const [feature, held] of pupil.taught.usual) {
      const value = held * this.#rarityOf(feature)
      squares += value * value
      if (!isStopWord(feature)) stems.push([feature, value])
    }
    pupil.length = Math.sqrt(squares)
    pupil.meaning = weightedMeaning(stems)
    pupil.readAt = this.#weight
  }

  #keep(lesson: TrainingExample): TrainingExample[] {
    const { agent, context } = lesson
    const pupil = this.#pupils.get(agent) ?? this.#enrol(agent)
    const words = Object.fromEntries(Object.entries(lesson.words).slice(0, featuresPerLessonMax))
    pupil.lessons.delete(context)
    pupil.lessons.set(context, { ...lesson, words })
    const agents = this.#agentsOf.get(context) ?? new Set()
    this.#agentsOf.set(context, agents.add(agent))
    const dropped: TrainingExample[] = []
    while (pupil.lessons.size > this.#perAgentMax) {
      const old = dropOldestOfMost(pupil.lessons)
      this.#unlink(old.context, agent)
      dropped.push(old)
    }
    return dropped
  }

  #enrol(agent: string): Pupil {
    const number = this.#freeNumbers.pop() ?? this.#numbers++
    if (number >= this.#weights.length) {
      const size = this.#weights.length * 2
      this.#weights = larger(this.#weights, size)
      this.#sums = larger(this.#sums, size)
      this.#products = larger(this.#products, size)
    }
    const pupil = newPupil(agent, number, this.#ownOf(agent))
    this.#pupils.set(agent, pupil)
    return pupil
  }

  #dismiss(agent: string): void {
    const pupil = this.#pupils.get(agent)
    if (pupil === undefined) return
    this.#freeNumbers.push(pupil.number)
    this.#pupils.delete(agent)
    this.#version += 1
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
      this.#dismiss(agent)
      return
    }
    pupil.asOf = this.#now()
    const lessons = [...pupil.lessons.values()]
    pupil.lifted = this.#lifts(lessons)
    pupil.own = this.#ownOf(agent) ?? pupil.own
    pupil.taught = taughtBy(lessons, pupil.asOf, pupil.own)
    pupil.readAt = 0
    this.#weights[pupil.number] = pupil.taught.weight
    this.#count(pupil, 1)
  }

  /** Whether there is enough that went well for the agent to be lifted by it. */
  #lifts(lessons: readonly TrainingExample[]): boolean {
    const good = lessons.filter(({ outcome }) => outcome > 0)
    return good.length >= contextsMin && new Set(good.map(({ caller }) => caller)).size >= this.#callersMin
  }

  #unteach(agent: string): void {
    const pupil = this.#pupils.get(agent)
    if (pupil === undefined) return
    this.#count(pupil, -1)
    pupil.taught = nothing
  }

  #count(pupil: Pupil, sign: 1 | -1): void {
    const { weight, features, usual } = pupil.taught
    this.#version += 1
    this.#weight = Math.max(0, this.#weight + sign * weight)
    for (const [feature, about] of usual) {
      const posting = this.#postings.get(feature) ?? new LessonPosting()
      if (sign === 1) {
        const own = pupil.own?.impacts.get(feature) ?? 0
        posting.add(pupil.number, features.get(feature) ?? 0, own, about)
        this.#postings.set(feature, posting)
      } else {
        posting.remove(pupil.number)
        if (posting.length === 0) this.#postings.delete(feature)
      }
    }
  }
}

/** How much of what is known about the agent its lessons tell: nothing, as long as they do not lift it. */
const knownOf = ({ lifted, taught }: Pupil): number => (lifted ? knownBy(taught.weight) : 0)
