// oxlint-disable-next-line typescript/triple-slash-reference -- types without a module: an import would have to be found at run time
/// <reference path="./webassembly.d.ts" />
import { readFileSync } from 'node:fs'
import { larger } from './larger.ts'

/** The numbers of a vector in a store. Longer vectors, which other models make, are folded to this many (`foldedTo`). */
export const storedDimensions = 384
const packedBytes = storedDimensions + 4
const pageBytes = 65_536
const queryBytes = 2 * storedDimensions
const vectorsFrom = 1024
const module = new WebAssembly.Module(readFileSync(new URL('./dot-products.wasm', import.meta.url)))

/** Writes `count` products of 32 bits. All arguments except `count` are addresses in the memory. */
type Dots = (query: number, vectors: number, count: number, out: number) => void

/** The cosines of one query vector with every vector of a store, indexed by slot. */
export interface Cosines {
  dots: Int32Array
  scales: Float64Array
  queryScale: number
}

export const cosineAt = ({ dots, scales, queryScale }: Cosines, slot: number): number =>
  (dots[slot] ?? 0) * (scales[slot] ?? 0) * queryScale

/**
 * Vectors of length 1, each stored as 384 integers of 8 bits and a scale, in one block of WebAssembly memory, where SIMD instructions
 * compare 10,000 of them with a query in less than a millisecond. The products are sums of integers, so that they are the same on every machine.
 */
export class VectorStore {
  readonly #memory = new WebAssembly.Memory({ initial: 1 })
  readonly #dots: Dots
  readonly #free: number[] = []
  #scales = new Float64Array(64)
  #size = 0
  /** Grows with every change. */
  version = 0

  constructor() {
    const { exports } = new WebAssembly.Instance(module, { env: { memory: this.#memory } })
    this.#dots = exports['dots'] as Dots
  }

  /** The highest slot plus one. */
  get size(): number {
    return this.#size
  }

  /** @returns the slot of the vector */
  add(vector: Float32Array): number {
    const slot = this.#free.pop() ?? this.#size++
    if (slot >= this.#scales.length) this.#scales = larger(this.#scales)
    this.#reserve(vectorsFrom + this.#size * storedDimensions)
    const { values, scale } = inBytes(vector)
    new Int8Array(this.#memory.buffer, vectorsFrom + slot * storedDimensions, storedDimensions).set(values)
    this.#scales[slot] = scale
    this.version += 1
    return slot
  }

  remove(slot: number): void {
    this.#scales[slot] = 0
    this.#free.push(slot)
    this.version += 1
  }

  /** Compares a vector with all others. The result stays valid when the store changes, but does not follow the change. */
  cosines(vector: Float32Array): Cosines {
    const out = vectorsFrom + this.#size * storedDimensions
    this.#reserve(out + 4 * this.#size)
    const { values, scale } = inBytes(vector)
    new Int16Array(this.#memory.buffer, 0, storedDimensions).set(values)
    this.#dots(0, vectorsFrom, this.#size, out)
    return {
      dots: new Int32Array(this.#memory.buffer, out, this.#size).slice(),
      scales: this.#scales.slice(0, this.#size),
      queryScale: scale,
    }
  }

  /** The cosines of a vector with single vectors of the store, equal to those of `cosines`. To be used before the store changes. */
  cosinesOf(vector: Float32Array): (slot: number) => number {
    const { values, scale } = inBytes(vector)
    const stored = new Int8Array(this.#memory.buffer)
    return (slot) => {
      const from = vectorsFrom + slot * storedDimensions
      let dot = 0
      for (let at = 0; at < storedDimensions; at += 1) dot += (values[at] ?? 0) * (stored[from + at] ?? 0)
      return dot * (this.#scales[slot] ?? 0) * scale
    }
  }

  #reserve(bytes: number): void {
    const missing = Math.max(bytes, queryBytes) - this.#memory.buffer.byteLength
    // A quarter more than is needed, because each growth may copy the memory.
    if (missing > 0) this.#memory.grow(Math.ceil((missing + bytes / 4) / pageBytes))
  }
}

/** Reduces a vector to integers from −127 to 127, times a scale. */
export function inBytes(vector: Float32Array): { values: Int8Array; scale: number } {
  const own = vector.length === storedDimensions ? vector : foldedTo(vector)
  let most = 0
  for (const value of own) most = Math.max(most, Math.abs(value))
  const scale = most / 127
  return { values: Int8Array.from(own, (value) => (scale === 0 ? 0 : Math.round(value / scale))), scale }
}

/**
 * Returns a vector of 384 numbers. A longer one is summed in groups with fixed signs, which nearly keeps the cosines of such vectors (a
 * sparse random projection); a shorter one is padded with zeros.
 */
function foldedTo(vector: Float32Array): Float32Array {
  const folded = new Float32Array(storedDimensions)
  if (vector.length < storedDimensions) {
    folded.set(vector)
    return folded
  }
  vector.forEach((value, at) => {
    const sign = ((Math.imul(at + 1, 0x9e3779b1) >>> 16) & 1) === 1 ? 1 : -1
    const to = (Math.imul(at + 1, 0x85ebca6b) >>> 8) % storedDimensions
    folded[to] = (folded[to] ?? 0) + sign * value
  })
  const length = Math.hypot(...folded)
  return folded.map((value) => (length === 0 ? 0 : value / length))
}

/** A vector in the form in which the store of this file compares it: its integers of 8 bits, and the largest number as a float of 32 bits. */
export function packed(vector: Float32Array): Uint8Array {
  const { values, scale } = inBytes(vector)
  const bytes = Buffer.alloc(packedBytes)
  bytes.set(new Uint8Array(values.buffer))
  bytes.writeFloatLE(127 * scale, storedDimensions)
  return bytes
}

/** A vector that `inBytes` reduces to the same integers and scale as the packed one. Undefined if the bytes are damaged. */
export function unpacked(bytes: Uint8Array): Float32Array | undefined {
  if (bytes.length !== packedBytes) return undefined
  const { buffer, byteOffset } = bytes
  const most = new DataView(buffer, byteOffset).getFloat32(storedDimensions, true)
  // No number of a vector of length 1 is larger.
  if (!(most >= 0 && most <= 1)) return undefined
  return Float32Array.from(
    new Int8Array(buffer, byteOffset, storedDimensions),
    (value) => value * (most / 127),
  )
}

/** A vector as text: its integers of 8 bits in base64. */
export const vectorText = (vector: Float32Array): string =>
  Buffer.from(inBytes(vector).values.buffer).toString('base64')

/** The inverse of `vectorText`, up to rounding, with length 1. Undefined if the text is not such a vector. */
export function vectorIn(text: string | undefined): Float32Array | undefined {
  if (text === undefined) return undefined
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length !== storedDimensions) return undefined
  const vector = Float32Array.from(new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length))
  const length = Math.hypot(...vector)
  return length === 0 ? undefined : vector.map((value) => value / length)
}
