import { readFileSync } from 'node:fs'
import { placeOf } from './english.ts'

/** The direction of a text: the sum of the vectors of its words (`english.vec`). */
export interface Meaning {
  vector: Int8Array
  /** Euclidean length of the vector. */
  length: number
}

/** Dimensions of the vectors in `english.vec`. */
export const dimensions = 128

let table: Int8Array | undefined

function vectors(): Int8Array {
  if (table === undefined) {
    const bytes = readFileSync(new URL('./english.vec', import.meta.url))
    table = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }
  return table
}

/**
 * Each stem counts once. Undefined if no stem is known. Uses integer arithmetic, so the result is the same on
 * every machine.
 */
export function meaningOf(stems: Iterable<string>): Meaning | undefined {
  const sum = new Int32Array(dimensions)
  let known = false
  for (const stem of stems) {
    const place = placeOf(stem)
    if (place === undefined) continue
    known = true
    const all = vectors()
    const from = place * dimensions
    for (let at = 0; at < dimensions; at += 1) sum[at] = (sum[at] ?? 0) + (all[from + at] ?? 0)
  }
  return known ? inBytes(sum) : undefined
}

/** Like `meaningOf`, but with a weight for each stem. */
export function weightedMeaning(
  stems: Iterable<readonly [stem: string, weight: number]>,
): Meaning | undefined {
  const sum = new Float64Array(dimensions)
  for (const [stem, weight] of stems) {
    const place = placeOf(stem)
    if (place === undefined || weight === 0) continue
    const all = vectors()
    const from = place * dimensions
    for (let at = 0; at < dimensions; at += 1) {
      sum[at] = (sum[at] ?? 0) + weight * (all[from + at] ?? 0)
    }
  }
  return inBytes(sum)
}

/** The same direction with 8 bits per dimension. */
export function inBytes(sum: ArrayLike<number>): Meaning | undefined {
  let most = 0
  for (let at = 0; at < dimensions; at += 1) most = Math.max(most, Math.abs(sum[at] ?? 0))
  if (most === 0) return undefined
  const vector = new Int8Array(dimensions)
  let squares = 0
  for (let at = 0; at < dimensions; at += 1) {
    const value = Math.round(((sum[at] ?? 0) * 127) / most)
    vector[at] = value
    squares += value * value
  }
  return { vector, length: Math.sqrt(squares) }
}

/** The cosine of the two directions, but at least 0. */
export function likeness(a: Meaning | undefined, b: Meaning | undefined): number {
  if (a === undefined || b === undefined) return 0
  return Math.max(0, product(a.vector, 0, b.vector) / (a.length * b.length))
}

/** The scalar product of a vector with the one that starts at `from`. */
export function product(all: Int8Array, from: number, vector: Int8Array): number {
  let a = 0
  let b = 0
  let c = 0
  let d = 0
  for (let at = 0; at < dimensions; at += 4) {
    const there = from + at
    a += (all[there] ?? 0) * (vector[at] ?? 0)
    b += (all[there + 1] ?? 0) * (vector[at + 1] ?? 0)
    c += (all[there + 2] ?? 0) * (vector[at + 2] ?? 0)
    d += (all[there + 3] ?? 0) * (vector[at + 3] ?? 0)
  }
  return a + b + c + d
}
