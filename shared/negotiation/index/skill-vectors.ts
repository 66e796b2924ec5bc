import { nearness } from '../score/evidence.ts'
import type { Row, RowVectors } from './rows.ts'
import { type Cosines, cosineAt, VectorStore } from './vector-store.ts'

/** The sentence vectors of a request, each of length 1. */
export interface QueryMeaning {
  /** The instruction as a whole. */
  whole: Float32Array
  /** Its parts, if it asks for several things. */
  parts: readonly Float32Array[]
  /** How near the request is to skills in general (`Knowledge.background`). */
  background: number
}

/** The sentence vectors of an agent's texts, each of length 1. */
export interface AgentVectors {
  /** The description of the agent. */
  agent?: Float32Array
  /** In the order of the skills. */
  skills: readonly { text: Float32Array; examples: readonly Float32Array[] }[]
}

/** The cosines of a request and of its parts with all texts. */
export interface QueryCosines {
  of: QueryMeaning
  version: number
  whole: Cosines
  parts: readonly Cosines[]
}

/** The number of texts of an agent with which one of its training examples is compared: an agent chooses how many it has. */
const comparedMax = 256

/** The sentence vectors of all agents. */
export class SkillVectors {
  readonly #store = new VectorStore()
  #last: QueryCosines | undefined
  #flat: (FlatSlots & { version: string }) | undefined

  /** Grows with every change. */
  get version(): number {
    return this.#store.version
  }

  add({ agent, skills }: AgentVectors): RowVectors {
    return {
      ...(agent !== undefined && { agent: this.#store.add(agent) }),
      skills: skills.map(({ text, examples }) => ({
        text: this.#store.add(text),
        examples: examples.map((example) => this.#store.add(example)),
      })),
    }
  }

  remove({ agent, skills }: RowVectors): void {
    if (agent !== undefined) this.#store.remove(agent)
    for (const { text, examples } of skills) for (const slot of [text, ...examples]) this.#store.remove(slot)
  }

  /**
   * How near the best skill of each row is to a request (`nearnessOf`), indexed by row. NaN for rows without vectors. The slots are kept
   * in flat arrays, because a ranking that reads thousands of objects is several times slower.
   */
  bestNearness(
    cosines: QueryCosines,
    rows: Iterable<Row>,
    capacity: number,
    rowsVersion: number,
  ): Float64Array {
    const version = `${rowsVersion} ${this.version}`
    if (this.#flat?.version !== version) this.#flat = { version, ...flatten(rows) }
    const { rowOf, agents, texts, exampleEnds, examples } = this.#flat
    const best = new Float64Array(capacity).fill(Number.NaN)
    const { whole, parts } = cosines
    for (let at = 0, from = 0; at < rowOf.length; from = exampleEnds[at] ?? 0, at += 1) {
      const [agent, text, to] = [agents[at] ?? 0, texts[at] ?? 0, exampleEnds[at] ?? 0]
      let near = flatNearness(whole, text, agent, examples, from, to)
      if (parts.length > 0) {
        let part = -1
        for (const one of parts) part = Math.max(part, flatNearness(one, text, agent, examples, from, to))
        near = (near + part) / 2
      }
      const row = rowOf[at] ?? 0
      const known = best[row] ?? 0
      if (!(known >= near)) best[row] = near
    }
    return best
  }

  /**
   * Returns a function that tells how near a vector is to the best skill of an agent (`nearness`), of those with the first `comparedMax`
   * texts. Undefined if it has no skills. To be used before the store changes.
   */
  comparerOf({ agent, skills }: RowVectors): ((vector: Float32Array) => number) | undefined {
    const compared = firstTexts(skills, comparedMax)
    if (compared.length === 0) return undefined
    return (vector) => {
      const cosine = this.#store.cosinesOf(vector)
      const ofAgent = agent === undefined ? undefined : cosine(agent)
      return Math.max(...compared.map((skill) => nearnessTo(skill, ofAgent, cosine)))
    }
  }

  /** Compares a request with all texts, once per request. */
  cosines(meaning: QueryMeaning): QueryCosines {
    const { version } = this
    if (this.#last?.of === meaning && this.#last.version === version) return this.#last
    const whole = this.#store.cosines(meaning.whole)
    const parts = meaning.parts.map((part) => this.#store.cosines(part))
    this.#last = { of: meaning, version, whole, parts }
    return this.#last
  }
}

/** The slots of all skills, one after the other. */
interface FlatSlots {
  rowOf: Int32Array
  /** −1 without a description of the agent. */
  agents: Int32Array
  texts: Int32Array
  /** The end of each skill's examples in `examples`. */
  exampleEnds: Int32Array
  examples: Int32Array
}

function flatten(rows: Iterable<Row>): FlatSlots {
  const [rowOf, agents, texts, ends, examples]: number[][] = [[], [], [], [], []]
  for (const { number, vectors } of rows) {
    for (const skill of vectors?.skills ?? []) {
      rowOf?.push(number)
      agents?.push(vectors?.agent ?? -1)
      texts?.push(skill.text)
      for (const example of skill.examples) examples?.push(example)
      ends?.push(examples?.length ?? 0)
    }
  }
  const flat = (values: number[] = []) => Int32Array.from(values)
  return {
    rowOf: flat(rowOf),
    agents: flat(agents),
    texts: flat(texts),
    exampleEnds: flat(ends),
    examples: flat(examples),
  }
}

/** `nearness` without an object for each skill. The order of the operations is the same, so that the result is. */
function flatNearness(
  cosines: Cosines,
  text: number,
  agent: number,
  examples: Int32Array,
  from: number,
  to: number,
): number {
  let example: number | undefined
  for (let at = from; at < to; at += 1) {
    const value = cosineAt(cosines, examples[at] ?? 0)
    if (example === undefined || value > example) example = Math.max(-1, value)
  }
  return nearness(cosineAt(cosines, text), example, agent < 0 ? undefined : cosineAt(cosines, agent))
}

/** How near each skill of an agent is to a request: the mean of the request as a whole and its nearest part. */
export function nearnessOf({ agent, skills }: RowVectors, { whole, parts }: QueryCosines): number[] {
  const nearTo = (skill: RowVectors['skills'][number], cosines: Cosines) => {
    const cosine = (slot: number) => cosineAt(cosines, slot)
    return nearnessTo(skill, agent === undefined ? undefined : cosine(agent), cosine)
  }
  return skills.map((skill) => {
    const near = nearTo(skill, whole)
    if (parts.length === 0) return near
    let best = -1
    for (const part of parts) best = Math.max(best, nearTo(skill, part))
    return (near + best) / 2
  })
}

/** The skills in order, as far as they have at most `max` texts together, each without examples beyond this number. */
function firstTexts(skills: RowVectors['skills'], max: number): RowVectors['skills'] {
  let texts = 0
  return skills
    .slice(0, max)
    .map(({ text, examples }) => ({ text, examples: examples.slice(0, max - 1) }))
    .filter(({ examples }) => (texts += 1 + examples.length) <= max)
}

function nearnessTo(
  { text, examples }: RowVectors['skills'][number],
  ofAgent: number | undefined,
  cosine: (slot: number) => number,
): number {
  let example: number | undefined
  for (const slot of examples) example = Math.max(example ?? -1, cosine(slot))
  return nearness(cosine(text), example, ofAgent)
}
