import type { Profile } from '../score/profile.ts'
import { dimensions, type Meaning, product } from '../words/meaning.ts'

/**
 * Rarity is computed as if there were at least this many further agents, because in a small registry no word is
 * common.
 */
const agentsImagined = 200

const noRow = -1
const noneLeftOut = { agents: 0, holders: 0 }

/**
 * Maps each stem to the units that contain it. A unit is one skill of an agent or a whole agent; `rowOf` maps it to
 * the agent.
 */
export class WordIndex {
  readonly #postings = new Map<string, Posting>()
  readonly #freeUnits: number[] = []
  #rowOf = new Int32Array(1024)
  #directions = new Int8Array(1024 * dimensions)
  /** 0 if the unit has no direction. */
  #lengths = new Float64Array(1024)
  #units = 0
  #agents = 0

  /** @returns the numbers of the new units, for `remove` */
  add(row: number, { units }: Profile): Int32Array {
    const numbers = new Int32Array(units.length)
    const stems = new Set<string>()
    units.forEach(({ impacts, meaning }, at) => {
      const unit = this.#newUnit(row)
      this.#lengths[unit] = meaning?.length ?? 0
      if (meaning !== undefined) this.#directions.set(meaning.vector, unit * dimensions)
      numbers[at] = unit
      for (const [stem, impact] of impacts) {
        stems.add(stem)
        this.#posting(stem).add(unit, impact)
      }
    })
    for (const stem of stems) this.#posting(stem).agents += 1
    this.#agents += 1
    return numbers
  }

  remove(numbers: Int32Array, { units }: Profile): void {
    const stems = new Set<string>()
    units.forEach(({ impacts }, at) => {
      const unit = numbers[at] ?? 0
      this.#freeUnits.push(unit)
      this.#rowOf[unit] = noRow
      for (const stem of impacts.keys()) {
        stems.add(stem)
        this.#posting(stem).remove(unit)
      }
    })
    for (const stem of stems) {
      const posting = this.#posting(stem)
      posting.agents -= 1
      if (posting.length === 0) this.#postings.delete(stem)
    }
    this.#agents -= 1
  }

  posting(stem: string): Posting | undefined {
    return this.#postings.get(stem)
  }

  /** The highest unit number plus one. */
  get capacity(): number {
    return this.#units
  }

  /** Like `likeness` applied to the unit's meaning and this one. */
  likeness(unit: number, { vector, length }: Meaning): number {
    const own = this.#lengths[unit] ?? 0
    if (own === 0) return 0
    return Math.max(0, product(this.#directions, unit * dimensions, vector) / (own * length))
  }

  /** Returns −1 for a removed unit. */
  rowOf(unit: number): number {
    return this.#rowOf[unit] ?? 0
  }

  /**
   * The rarity of a stem among the agents, as in BM25.
   * @param without numbers of agents to leave out: of all agents, and of those that contain the stem
   */
  rarityOf(stem: string, without: { agents: number; holders: number } = noneLeftOut): number {
    const agents = this.#agents - without.agents + agentsImagined
    const holders = (this.#postings.get(stem)?.agents ?? 0) - without.holders
    return Math.log(1 + (agents - holders + 0.5) / (holders + 0.5))
  }

  #newUnit(row: number): number {
    const unit = this.#freeUnits.pop() ?? this.#units++
    if (unit >= this.#rowOf.length) {
      const larger = new Int32Array(this.#rowOf.length * 2)
      larger.set(this.#rowOf)
      this.#rowOf = larger
      const directions = new Int8Array(larger.length * dimensions)
      directions.set(this.#directions)
      this.#directions = directions
      const lengths = new Float64Array(larger.length)
      lengths.set(this.#lengths)
      this.#lengths = lengths
    }
    this.#rowOf[unit] = row
    return unit
  }

  #posting(stem: string): Posting {
    let posting = this.#postings.get(stem)
    if (posting === undefined) {
      posting = new Posting()
      this.#postings.set(stem, posting)
    }
    return posting
  }
}

/** The units that contain a stem, with their impacts. */
class Posting {
  units = new Int32Array(4)
  impacts = new Float32Array(4)
  length = 0
  /** An upper bound of the impacts. */
  most = 0
  /** Number of agents whose texts contain the stem. */
  agents = 0

  add(unit: number, impact: number): void {
    if (this.length === this.units.length) this.#grow()
    this.units[this.length] = unit
    this.impacts[this.length] = impact
    this.length += 1
    if (impact > this.most) this.most = impact
  }

  remove(unit: number): void {
    const at = this.units.subarray(0, this.length).indexOf(unit)
    if (at < 0) return
    this.length -= 1
    this.units[at] = this.units[this.length] ?? 0
    this.impacts[at] = this.impacts[this.length] ?? 0
  }

  #grow(): void {
    const units = new Int32Array(this.length * 2)
    units.set(this.units)
    this.units = units
    const impacts = new Float32Array(this.length * 2)
    impacts.set(this.impacts)
    this.impacts = impacts
  }
}

/** Caches rarities for one query. */
export function memoized(rarityOf: (stem: string) => number): (stem: string) => number {
  const known = new Map<string, number>()
  return (stem) => {
    let value = known.get(stem)
    if (value === undefined) {
      value = rarityOf(stem)
      known.set(stem, value)
    }
    return value
  }
}
