import { rarity } from '../score/evidence.ts'
import type { Knowledge } from '../score/knowledge.ts'
import type { Query } from '../score/query.ts'
import type { WordIndex } from './word-index.ts'

/** Sums of one ranking. The arrays are reused by the next ranking. */
export class ScoreSums {
  /** Word evidence for the query, indexed by unit. */
  words = new Float64Array(0)
  /** Evidence for the current query word so far and the number of that word, indexed by unit. */
  said = new Float64Array(0)
  saidOf = new Int32Array(0)
  /** The word evidence of the best unit, indexed by row. */
  best = new Float64Array(0)
  /** The rows with word evidence, `touchedCount` of them. */
  touched = new Int32Array(0)
  touchedCount = 0

  /** Sums the word evidence of all units, and finds the best unit of each row. */
  read(query: Query, index: WordIndex, rows: number, knowledge: Knowledge): void {
    this.#ready(index.capacity, rows)
    addWords(query, index, knowledge, this)
    const { words, best } = this
    for (let unit = 0; unit < index.capacity; unit += 1) {
      const value = words[unit] ?? 0
      if (value === 0) continue
      const row = index.rowOf(unit)
      if (row < 0 || value <= (best[row] ?? 0)) continue
      if (best[row] === 0) this.touched[this.touchedCount++] = row
      best[row] = value
    }
  }

  #ready(units: number, rows: number): void {
    if (this.words.length < units) {
      this.words = new Float64Array(units * 2)
      this.said = new Float64Array(units * 2)
      this.saidOf = new Int32Array(units * 2)
    } else this.words.fill(0, 0, units)
    this.saidOf.fill(0, 0, units)
    this.touchedCount = 0
    if (this.best.length < rows) {
      this.best = new Float64Array(rows * 2)
      this.touched = new Int32Array(rows * 2)
    } else this.best.fill(0, 0, rows)
  }
}

/** Adds each unit's word evidence, in which each query word counts by its best match. */
function addWords({ terms }: Query, index: WordIndex, knowledge: Knowledge, sums: ScoreSums): void {
  let number = 0
  for (const { stem, weight, related } of terms) {
    number += 1
    addList(stem, weight * rarity(stem, knowledge), number, index, sums)
    for (const [other, share] of related) {
      if (index.posting(other) === undefined) continue
      addList(other, weight * share * rarity(other, knowledge), number, index, sums)
    }
  }
}

function addList(stem: string, weight: number, number: number, index: WordIndex, sums: ScoreSums): void {
  const posting = index.posting(stem)
  if (posting === undefined) return
  const { units, impacts, length } = posting
  const { words, said, saidOf } = sums
  for (let at = 0; at < length; at += 1) {
    const unit = units[at] ?? 0
    const value = weight * (impacts[at] ?? 0)
    if (saidOf[unit] !== number) {
      saidOf[unit] = number
      said[unit] = value
      words[unit] = (words[unit] ?? 0) + value
    } else if (value > (said[unit] ?? 0)) {
      words[unit] = (words[unit] ?? 0) + value - (said[unit] ?? 0)
      said[unit] = value
    }
  }
}
