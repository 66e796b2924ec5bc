import type { Facts, Offer } from '../score/offer.ts'
import { type Profile, profileOf } from '../score/profile.ts'

export interface Row {
  id: string
  slug: string
  number: number
  offer: Offer
  profile: Profile
  units: Int32Array
  /** Skills with the same types and tools share a shape. */
  shape: Shape
  /** The rule that currently excludes the agent. */
  rule?: string
  /** Whether the exclusion is expected to end soon (see `RankOptions.evenAway`). */
  away?: boolean
  /** Where the vectors of the agent's texts are stored. Absent until they are computed. */
  vectors?: RowVectors
}

/** Slots of a `VectorStore`. */
export interface RowVectors {
  /** The description of the agent. */
  agent?: number
  /** In the order of the skills. */
  skills: readonly { text: number; examples: readonly number[] }[]
}

/** The skill fields that hard constraints read. `agents` agents share them. */
export interface Shape {
  key: string
  skills: Offer['skills']
  agents: number
}

/** The rows of the index, accessible by id, by number and in slug order. */
export class Rows {
  readonly #byId = new Map<string, Row>()
  readonly #byNumber: (Row | undefined)[] = []
  readonly #free: number[] = []
  readonly #shapes = new Map<string, Shape>()
  #ordered: Row[] | undefined
  /** Grows whenever a row is added or removed. */
  version = 0

  get size(): number {
    return this.#byId.size
  }

  get capacity(): number {
    return this.#byNumber.length
  }

  byId(id: string): Row | undefined {
    return this.#byId.get(id)
  }

  byNumber(number: number): Row {
    return this.#byNumber[number] as Row
  }

  /** All rows, in no order. */
  all(): Iterable<Row> {
    return this.#byId.values()
  }

  /** Returns the rows sorted by slug. */
  ordered(): readonly Row[] {
    this.#ordered ??= [...this.#byId.values()].sort((a, b) => (a.slug < b.slug ? -1 : 1))
    return this.#ordered
  }

  shapes(): Iterable<Shape> {
    return this.#shapes.values()
  }

  add(id: string, slug: string, offer: Offer): Row {
    const number = this.#free.pop() ?? this.#byNumber.length
    const row: Row = {
      id,
      slug,
      number,
      offer,
      profile: profileOf(offer),
      units: new Int32Array(0),
      shape: this.#shapeOf(offer),
    }
    this.version += 1
    this.#byId.set(id, row)
    this.#byNumber[number] = row
    if (this.#ordered !== undefined) this.#ordered.splice(this.#placeOf(slug), 0, row)
    return row
  }

  remove(row: Row): void {
    this.version += 1
    this.#byId.delete(row.id)
    this.#byNumber[row.number] = undefined
    this.#free.push(row.number)
    row.shape.agents -= 1
    if (row.shape.agents === 0) this.#shapes.delete(row.shape.key)
    const at = this.#ordered?.indexOf(row) ?? -1
    if (at >= 0) this.#ordered?.splice(at, 1)
  }

  #placeOf(slug: string): number {
    const all = this.#ordered as Row[]
    let low = 0
    let high = all.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((all[middle] as Row).slug < slug) low = middle + 1
      else high = middle
    }
    return low
  }

  #shapeOf({ skills }: Offer): Shape {
    const key = JSON.stringify(
      skills.map((skill) => [skill.inputModes, skill.outputModes, skill.allowedTools]),
    )
    const shape = this.#shapes.get(key) ?? { key, skills, agents: 0 }
    shape.agents += 1
    this.#shapes.set(key, shape)
    return shape
  }
}

/** Returns the offer with its facts replaced. */
export function withFacts({ name, description, skills }: Offer, facts: Facts): Offer {
  return {
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    skills,
    ...facts,
  }
}
