import type { Sums } from './gather.ts'
import type { WordIndex } from './word-index.ts'

export interface Bound {
  row: number
  /** No more evidence than this, of what was added up. */
  most: number
}

/** What the sums say of agents: an agent's best unit and its lessons. */
export class UpperBounds {
  readonly #sums: Sums
  readonly #index: WordIndex

  constructor(sums: Sums, index: WordIndex) {
    this.#sums = sums
    this.#index = index
  }

  /** The highest of all. */
  most(): number {
    let most = 0
    for (const { most: one } of this.all()) most = Math.max(most, one)
    return most
  }

  /** Every agent that was touched; one with several units comes several times. */
  *all(): Iterable<Bound> {
    const { units, rows, words, learned } = this.#sums
    for (const unit of units) {
      const row = this.#index.rowOf(unit)
      yield { row, most: (words[unit] as number) + (learned[row] as number) }
    }
    for (const row of rows) yield { row, most: learned[row] as number }
  }

  /** About the `count` highest, without order. */
  first(count: number): number[] {
    const heads: Bound[] = []
    let least = 0
    for (const bound of this.all()) {
      if (heads.length >= count && bound.most <= least) continue
      heads.push(bound)
      if (heads.length < 4 * count) continue
      heads.sort((a, b) => b.most - a.most)
      heads.length = count
      least = heads[count - 1]?.most ?? 0
    }
    return heads
      .sort((a, b) => b.most - a.most)
      .slice(0, count)
      .map(({ row }) => row)
  }
}
