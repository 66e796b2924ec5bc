import { rarity, withFeedback } from '../score/evidence.ts'
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
  /** Upper bound of the feedback, indexed by row. */
  learned = new Float64Array(0)
  /** Fraction of the knowledge about the agent that comes from examples, indexed by row. */
  known = new Float64Array(0)
  /** The maximum feedback of any agent. */
  most = 0
  /** Whether any agent has feedback for the query. */
  #feedback = false
  /** The last ranking that visited each row, indexed by row. */
  seen = new Int32Array(0)
  ranking = 0

  ready(units: number, rows: number): void {
    if (this.words.length < units) {
      this.words = new Float64Array(units * 2)
      this.said = new Float64Array(units * 2)
      this.saidOf = new Int32Array(units * 2)
    } else this.words.fill(0, 0, units)
    this.saidOf.fill(0, 0, units)
    if (this.learned.length < rows) {
      this.learned = new Float64Array(rows * 2)
      this.known = new Float64Array(rows * 2)
      this.seen = new Int32Array(rows * 2)
    } else if (this.#feedback) {
      this.learned.fill(0)
      this.known.fill(0)
    }
    this.#feedback = false
    this.most = 0
    this.ranking += 1
  }

  /** Sets the upper bound of a row's feedback and the fraction of knowledge that comes from examples. */
  setFeedback(row: number, most: number, known: number): void {
    this.learned[row] = most
    this.known[row] = known
    this.#feedback = true
  }

  /** Whether neither the unit nor feedback for its row gives evidence, as is the case for most units. */
  isSilent(unit: number, row: number): boolean {
    return this.words[unit] === 0 && !(this.#feedback && (this.learned[row] ?? 0) > 0)
  }

  /** Upper bound of a row's evidence if its own words give `own`. */
  evidenceMost(row: number, own: number): number {
    return withFeedback(own, this.known[row] ?? 0, this.most) + (this.learned[row] ?? 0)
  }
}

/** Adds each unit's word evidence, in which each query word counts by its best match. */
export function addWords({ terms }: Query, index: WordIndex, knowledge: Knowledge, sums: ScoreSums): void {
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
