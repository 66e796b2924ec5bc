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

  /** Every row that could have `least` and more, the highest first; one with several units comes several times. */
  atLeast(least: number): Bound[] {
    const { units, rows } = this.#sums
    const found: Bound[] = []
    for (const unit of units) {
      const row = this.#index.rowOf(unit)
      const most = this.most(row, unit)
      if (most >= least) found.push({ row, most })
    }
    for (const row of rows) if (this.most(row) >= least) found.push({ row, most: this.most(row) })
    return found.sort((a, b) => b.most - a.most)
  }

  most(row: number, unit?: number): number {
    const { words, learned } = this.#sums
    return (learned[row] as number) + (unit === undefined ? 0 : (words[unit] as number))
  }

  /** About the `count` highest, the highest first. */
  first(count: number): number[] {
    const { units, rows } = this.#sums
    const heads: Bound[] = []
    let least = -1
    const see = (row: number, most: number) => {
      if (most <= least) return
      heads.push({ row, most })
      if (heads.length < 4 * count) return
      heads.sort((a, b) => b.most - a.most)
      heads.length = count
      least = heads[count - 1]?.most ?? -1
    }
    for (const unit of units) {
      const row = this.#index.rowOf(unit)
      see(row, this.most(row, unit))
    }
    for (const row of rows) see(row, this.most(row))
    return heads
      .sort((a, b) => b.most - a.most)
      .slice(0, count)
      .map(({ row }) => row)
  }
}
