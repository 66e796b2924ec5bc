import { featureEvidence, type Taught, taughtBy } from '../../shared/negotiation/learning.ts'
import type { Lesson } from '../../shared/negotiation/lesson.ts'

export interface LearnedOptions {
  /** Milliseconds since 1970; lessons lose half of their weight in 90 days. */
  now?: () => number
  /** Lessons kept for one agent, the newest; 400 by default. */
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
}

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

  /** @returns lessons that no longer fit beside it, oldest first: whoever stores lessons may drop them. */
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

  /** The agents whose lessons hold the feature. */
  holders(feature: string): Iterable<string> {
    return this.#held.get(feature)?.keys() ?? []
  }

  /** Lets old lessons fade; at most once a day for an agent. */
  refresh(): void {
    const now = this.#now()
    for (const [agent, { asOf }] of this.#pupils) if (now - asOf > refreshMs) this.#teach(agent)
  }

  #shareOf(feature: string): number {
    return ((this.#shares.get(feature) ?? 0) + 0.5) / (this.#weight + 1)
  }

  #keep(lesson: Lesson): Lesson[] {
    const { agent, context } = lesson
    const pupil = this.#pupils.get(agent) ?? { lessons: new Map(), taught: nothing, asOf: 0 }
    this.#pupils.set(agent, pupil)
    const words = Object.fromEntries(Object.entries(lesson.words).slice(0, featuresPerLessonMax))
    pupil.lessons.delete(context)
    pupil.lessons.set(context, { ...lesson, words })
    const agents = this.#agentsOf.get(context) ?? new Set()
    this.#agentsOf.set(context, agents.add(agent))
    const dropped: Lesson[] = []
    for (const [oldest, old] of pupil.lessons) {
      if (pupil.lessons.size <= this.#perAgentMax) break
      pupil.lessons.delete(oldest)
      this.#unlink(oldest, agent)
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

const nothing: Taught = { weight: 0, features: new Map() }
