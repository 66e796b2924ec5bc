import type { Query } from '../score/query.ts'
import { backgroundRarity } from '../words/english.ts'
import { ExamplePosting } from './example-posting.ts'
import { larger } from './larger.ts'

/** Rarity is computed as if there were this many further examples of other kinds, because among few examples of one kind no word is rare. */
const examplesImagined = 50
/** Lengths of examples are recomputed when the number of examples has changed by this fraction. */
const staleShare = 0.05

/** The words of training examples, by which they are compared with a query. Examples are identified by their numbers. */
export class ExampleWords {
  readonly #postings = new Map<string, ExamplePosting>()
  readonly #stems = new Map<number, readonly string[]>()
  /** Length of each example's words, weighted by rarity. */
  #lengths = new Float64Array(64)
  /** The examples whose length must be computed. */
  readonly #unread = new Set<number>()
  #readAt = 0

  add(example: number, stems: readonly string[]): void {
    this.#stems.set(example, stems)
    this.#unread.add(example)
    for (const stem of stems) {
      const posting = this.#postings.get(stem) ?? new ExamplePosting()
      posting.add(example)
      this.#postings.set(stem, posting)
    }
  }

  remove(example: number): void {
    for (const stem of this.#stems.get(example) ?? []) {
      const posting = this.#postings.get(stem)
      posting?.remove(example)
      if (posting?.length === 0) this.#postings.delete(stem)
    }
    this.#stems.delete(example)
    this.#unread.delete(example)
  }

  /**
   * The cosine of the query's words with those of each example, weighted by rarity.
   * @param capacity the highest number of an example plus one: the length of the result
   */
  cosines({ features, common }: Query, capacity: number): Float64Array {
    this.#readLengths(capacity)
    const values = new Float64Array(capacity)
    let squares = 0
    for (const stem of [...features, ...common]) {
      const posting = this.#postings.get(stem)
      const square = this.#rarityOf(stem) ** 2
      squares += square
      if (posting === undefined) continue
      for (let at = 0; at < posting.length; at += 1) {
        const example = posting.examples[at] ?? 0
        values[example] = (values[example] ?? 0) + square
      }
    }
    const length = Math.sqrt(squares)
    for (let example = 0; example < capacity; example += 1) {
      const lengths = length * (this.#lengths[example] ?? 0)
      values[example] = lengths === 0 ? 0 : Math.min(1, (values[example] ?? 0) / lengths)
    }
    return values
  }

  /** How much a stem says: its rarity in English times its rarity among the examples. */
  #rarityOf(stem: string): number {
    const holders = this.#postings.get(stem)?.length ?? 0
    return backgroundRarity(stem) * (Math.log((this.#stems.size + examplesImagined) / (holders + 1)) + 1)
  }

  /** Recomputes the lengths of all examples if their number has changed much, otherwise those of new examples. */
  #readLengths(capacity: number): void {
    if (capacity > this.#lengths.length) this.#lengths = larger(this.#lengths, capacity)
    const isStale = Math.abs(this.#stems.size - this.#readAt) > staleShare * this.#readAt
    if (isStale) this.#readAt = this.#stems.size
    for (const example of isStale ? this.#stems.keys() : this.#unread) {
      let squares = 0
      for (const stem of this.#stems.get(example) ?? []) squares += this.#rarityOf(stem) ** 2
      this.#lengths[example] = Math.sqrt(squares)
    }
    this.#unread.clear()
  }
}
