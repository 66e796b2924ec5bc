import { rarity, withFeedback } from '../score/evidence.ts'
import type { Knowledge } from '../score/knowledge.ts'
import type { Query } from '../score/query.ts'
import type { WordIndex } from './word-index.ts'

/** Room for the sums of one ranking; used again by the next, so that none is made for each. */
export class ScoreSums {
  /** By unit: what its words say for the text. */
  words = new Float64Array(0)
  /** By unit: what the word under way has said so far, and which word that was. */
  said = new Float64Array(0)
  saidOf = new Int32Array(0)
  /** By row: at least what its past says. */
  learned = new Float64Array(0)
  /** By row: how much of what is known about it its examples tell. */
  known = new Float64Array(0)
  /** The most that examples say. */
  most = 0
  /** Whether any past says anything. */
  #feedback = false
  /** By row: the ranking in which it was looked at. */
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

  /** Notes the most that the past of the agent of the row says, and how much of what is known about it that is. */
  teach(row: number, most: number, known: number): void {
    this.learned[row] = most
    this.known[row] = known
    this.#feedback = true
  }

  /** That nothing speaks for the unit: true of most, and told at a glance. */
  isSilent(unit: number): boolean {
    return !this.#feedback && this.words[unit] === 0
  }

  /** At least the evidence for the agent of the row where its own words say so much. */
  evidenceMost(row: number, own: number): number {
    return withFeedback(own, this.known[row] as number, this.most) + (this.learned[row] as number)
  }
}

/** Adds up for every unit what its words say for the text: each word of the text by the best that answers it. */
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
    const unit = units[at] as number
    const value = weight * (impacts[at] as number)
    if (saidOf[unit] !== number) {
      saidOf[unit] = number
      said[unit] = value
      words[unit] = (words[unit] as number) + value
    } else if (value > (said[unit] as number)) {
      words[unit] = (words[unit] as number) + value - (said[unit] as number)
      said[unit] = value
    }
  }
}
