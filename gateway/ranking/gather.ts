import { rarity } from '../../shared/negotiation/evidence.ts'
import type { Knowledge } from '../../shared/negotiation/knowledge.ts'
import type { Query } from '../../shared/negotiation/query.ts'
import type { Posting } from './postings.ts'
import type { WordIndex } from './word-index.ts'

interface List {
  posting: Posting
  weight: number
  /** The most that it says of a unit. */
  most: number
  /** The same of the next list of its word, which may take its place. */
  next: number
}

/** Room for the sums of one ranking; used again by the next. */
export class Sums {
  words = new Float64Array(0)
  learned = new Float64Array(0)
  readonly units: number[] = []
  readonly rows: number[] = []

  ready(units: number, rows: number): void {
    if (this.words.length < units) this.words = new Float64Array(units * 2)
    if (this.learned.length < rows) this.learned = new Float64Array(rows * 2)
  }

  clear(): void {
    for (const unit of this.units) this.words[unit] = 0
    for (const row of this.rows) this.learned[row] = 0
    this.units.length = 0
    this.rows.length = 0
  }
}

/**
 * Every list of units that the words of the text lead to, the one that can say most first. A word and its relations count
 * once in the exact evidence, here each for itself: the sums are never below it.
 */
export function listsOf({ terms }: Query, index: WordIndex, knowledge: Knowledge): List[] {
  const lists: List[] = []
  for (const { stem, weight, related } of terms) {
    const own: List[] = []
    push(own, index.posting(stem), weight * rarity(stem, knowledge))
    for (const [other, share] of related) {
      const posting = index.posting(other)
      if (posting !== undefined) push(own, posting, weight * share * rarity(other, knowledge))
    }
    own.sort((a, b) => b.most - a.most)
    own.forEach((list, at) => {
      list.next = own[at + 1]?.most ?? 0
      lists.push(list)
    })
  }
  return lists.sort((a, b) => b.most - a.most)
}

function push(lists: List[], posting: Posting | undefined, weight: number): void {
  if (posting !== undefined) lists.push({ posting, weight, most: weight * posting.most, next: 0 })
}

/** A list shorter than this is read without asking whether it could be left out. */
const shortList = 300

/**
 * Adds up the lists until what is left could change nothing: `enough(left)` is asked before long lists, with the most that
 * all lists left could add to one unit, but not before as much was read as asking costs.
 * @returns that most, 0 when everything was read
 */
export function addUp(lists: readonly List[], sums: Sums, enough: (left: number) => boolean): number {
  let left = 0
  let top = 0
  let read = 0
  for (const { most, next } of lists) left += most - next
  for (const { posting, weight, most, next } of lists) {
    const { units, impacts, length } = posting
    const { words, units: touched } = sums
    if (length > shortList && top > left && read + length > touched.length / 2) {
      if (enough(left)) return left
      read = 0
    }
    for (let at = 0; at < length; at += 1) {
      const unit = units[at] as number
      const before = words[unit] as number
      if (before === 0) touched.push(unit)
      const now = before + weight * (impacts[at] as number)
      words[unit] = now
      if (now > top) top = now
    }
    read += length
    left = Math.max(0, left - most + next)
  }
  return 0
}
