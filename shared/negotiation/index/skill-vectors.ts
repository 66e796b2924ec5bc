import { nearness } from '../score/evidence.ts'
import type { RowVectors } from './rows.ts'
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

/** The sentence vectors of all agents. */
export class SkillVectors {
  readonly #store = new VectorStore()
  #last: QueryCosines | undefined

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

/** How near each skill of an agent is to a request: the mean of the request as a whole and its nearest part. */
export function nearnessOf({ agent, skills }: RowVectors, { whole, parts }: QueryCosines): number[] {
  return skills.map((skill) => {
    const near = nearnessTo(skill, agent, whole)
    if (parts.length === 0) return near
    let best = -1
    for (const part of parts) best = Math.max(best, nearnessTo(skill, agent, part))
    return (near + best) / 2
  })
}

function nearnessTo(
  { text, examples }: RowVectors['skills'][number],
  agent: number | undefined,
  cosines: Cosines,
): number {
  let example: number | undefined
  for (const slot of examples) example = Math.max(example ?? -1, cosineAt(cosines, slot))
  return nearness({
    text: cosineAt(cosines, text),
    example,
    agent: agent === undefined ? undefined : cosineAt(cosines, agent),
  })
}
