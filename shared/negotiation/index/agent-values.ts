import { feedbackMax } from '../score/evidence.ts'
import { pastEvidence } from '../score/learning.ts'
import { dimensions, type Meaning, product } from '../words/meaning.ts'

/** Length and direction of a query, compared with typical texts. */
export interface QueryTexts {
  length: number
  meaning: Meaning | undefined
}

/** Whether an agent number is in use, and whether the agent's examples may raise its score. */
export const noAgent = 0
export const notBoosted = 1
export const boosted = 2

/**
 * The values of every agent with training examples that a ranking reads. Arrays are indexed by agent number, because a ranking
 * that reads thousands of objects is several times slower.
 */
export class AgentValues {
  /** The highest agent number plus one. */
  size = 0
  /** `noAgent`, `notBoosted` or `boosted`. */
  kinds = new Uint8Array(64)
  /** The total weight of the agent's examples. */
  weights = new Float64Array(64)
  /** The length of the agent's typical texts, weighted by rarity. */
  lengths = new Float64Array(64)
  /** The evidence and the product with the typical texts for the current query. */
  sums = new Float64Array(64)
  products = new Float64Array(64)
  /** The upper bound of the feedback for the current query. */
  bounds = new Float64Array(64)
  #directions = new Int8Array(64 * dimensions)
  /** 0 if the agent has no direction. */
  #directionLengths = new Float64Array(64)
  readonly #free: number[] = []

  /** @returns the number of the new agent */
  add(): number {
    const number = this.#free.pop() ?? this.size++
    if (number >= this.kinds.length) this.#grow()
    this.kinds[number] = notBoosted
    return number
  }

  remove(number: number): void {
    this.kinds[number] = noAgent
    this.#free.push(number)
  }

  /** Sets length and direction of the agent's typical texts. */
  setTypical(number: number, length: number, meaning: Meaning | undefined): void {
    this.lengths[number] = length
    this.#directionLengths[number] = meaning?.length ?? 0
    if (meaning !== undefined) this.#directions.set(meaning.vector, number * dimensions)
  }

  /** Similarity of the query to the agent's typical texts. */
  past(number: number, { length, meaning }: QueryTexts): number {
    const lengths = (this.lengths[number] ?? 0) * length
    const words = lengths === 0 ? 0 : Math.min(1, Math.max(0, (this.products[number] ?? 0) / lengths))
    const direction = meaning === undefined ? 0 : this.#likeness(number, meaning)
    return pastEvidence(words, direction, this.weights[number] ?? 0)
  }

  setBounds(query: QueryTexts, mass: number): void {
    for (let number = 0; number < this.size; number += 1) {
      if (this.kinds[number] === noAgent) continue
      this.bounds[number] = feedbackMax(this.sums[number] ?? 0, this.past(number, query), mass)
    }
  }

  /** The highest bound of an agent that is not boosted, and of one that is. */
  highestBounds(isHidden?: (number: number) => boolean): [others: number, boosted: number] {
    const most = [0, 0, 0]
    for (let number = 0; number < this.size; number += 1) {
      const kind = this.kinds[number] ?? noAgent
      const said = this.bounds[number] ?? 0
      if (kind !== noAgent && said > (most[kind] ?? 0) && isHidden?.(number) !== true) most[kind] = said
    }
    return [most[notBoosted] ?? 0, most[boosted] ?? 0]
  }

  startQuery(): void {
    this.sums.fill(0, 0, this.size)
    this.products.fill(0, 0, this.size)
  }

  /** Like `likeness` applied to the direction of the agent's typical texts and this meaning. */
  #likeness(number: number, { vector, length }: Meaning): number {
    const own = this.#directionLengths[number] ?? 0
    return own === 0
      ? 0
      : Math.max(0, product(this.#directions, number * dimensions, vector) / (own * length))
  }

  #grow(): void {
    const size = this.kinds.length * 2
    const kinds = new Uint8Array(size)
    kinds.set(this.kinds)
    this.kinds = kinds
    const directions = new Int8Array(size * dimensions)
    directions.set(this.#directions)
    this.#directions = directions
    this.#directionLengths = larger(this.#directionLengths, size)
    this.weights = larger(this.weights, size)
    this.lengths = larger(this.lengths, size)
    this.sums = larger(this.sums, size)
    this.products = larger(this.products, size)
    this.bounds = larger(this.bounds, size)
  }
}

/** Returns a copy with the given size. */
export function larger(values: Float64Array, size: number): Float64Array<ArrayBuffer> {
  const all = new Float64Array(size)
  all.set(values)
  return all
}
