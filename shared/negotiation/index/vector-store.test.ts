import { readFileSync } from 'node:fs'
import { numbersFrom } from '@parley/tools/testing/routing-list'
import { expect, test } from 'vitest'
import wabt from 'wabt'
import { cosineAt, inBytes, packed, unpacked, VectorStore, vectorIn, vectorText } from './vector-store.ts'

const folder = new URL('./', import.meta.url)

function randomVector(next: () => number, length = 384): Float32Array {
  const vector = Float32Array.from({ length }, () => next() - 0.5)
  const norm = Math.hypot(...vector)
  return vector.map((value) => value / norm)
}

const product = (a: Float32Array, b: Float32Array) =>
  a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0)

test('dot-products.wasm is what dot-products.wat compiles to', async () => {
  const compiler = await wabt()
  const source = readFileSync(new URL('dot-products.wat', folder), 'utf8')
  const compiled = compiler.parseWat('dot-products.wat', source, { simd: true }).toBinary({}).buffer
  expect(Buffer.from(compiled).equals(readFileSync(new URL('dot-products.wasm', folder)))).toBe(true)
})

test('the cosines are those of the vectors, within the rounding to 8 bits, also after the store has grown and reused slots', () => {
  const next = numbersFrom(1)
  const store = new VectorStore()
  const kept = new Map<number, Float32Array>()
  for (let at = 0; at < 3000; at += 1) {
    const vector = randomVector(next)
    kept.set(store.add(vector), vector)
    const [oldest] = kept.keys()
    if (next() < 0.3 && oldest !== undefined) {
      store.remove(oldest)
      kept.delete(oldest)
    }
  }
  const query = randomVector(next)
  const cosines = store.cosines(query)
  for (const [slot, vector] of kept)
    expect(Math.abs(cosineAt(cosines, slot) - product(vector, query))).toBeLessThan(0.003)
  const single = store.cosinesOf(query)
  for (const slot of kept.keys()) expect(single(slot)).toBe(cosineAt(cosines, slot))
})

test('longer vectors of other models keep their cosines approximately, and shorter ones exactly', () => {
  const next = numbersFrom(2)
  const store = new VectorStore()
  const long = randomVector(next, 1536)
  const other = randomVector(next, 1536)
  const slots = [store.add(long), store.add(other)]
  const cosines = store.cosines(long)
  expect(cosineAt(cosines, slots[0] ?? -1)).toBeCloseTo(1, 2)
  expect(Math.abs(cosineAt(cosines, slots[1] ?? -1) - product(long, other))).toBeLessThan(0.2)
  const short = randomVector(next, 64)
  expect(cosineAt(store.cosines(short), store.add(short))).toBe(0)
  const slot = store.add(short)
  expect(cosineAt(store.cosines(short), slot)).toBeCloseTo(1, 2)
})

test('a vector survives its text form, and other texts are no vectors', () => {
  const vector = randomVector(numbersFrom(3))
  expect(product(vectorIn(vectorText(vector)) ?? new Float32Array(), vector)).toBeCloseTo(1, 3)
  for (const text of [undefined, '', 'AAAA', 'not base64!', Buffer.alloc(384).toString('base64')])
    expect(vectorIn(text)).toBeUndefined()
})

test('a packed vector is compared exactly as before, whatever its length', () => {
  const next = numbersFrom(4)
  for (const length of [2, 64, 384, 384, 384, 1536]) {
    const vector = randomVector(next, length)
    const again = unpacked(packed(vector)) ?? new Float32Array()
    expect(inBytes(again)).toEqual(inBytes(vector))
    expect(packed(again)).toEqual(packed(vector))
  }
  expect(inBytes(unpacked(packed(new Float32Array(384))) ?? new Float32Array())).toEqual(
    inBytes(new Float32Array(384)),
  )
})

test('damaged bytes are no vector', () => {
  const bytes = packed(randomVector(numbersFrom(5)))
  const withMost = (most: number) => {
    const changed = Buffer.from(bytes)
    changed.writeFloatLE(most, 384)
    return changed
  }
  for (const damaged of [
    new Uint8Array(),
    bytes.subarray(1),
    new Uint8Array([...bytes, 0]),
    withMost(Number.NaN),
    withMost(-0.1),
    withMost(2),
    withMost(Number.POSITIVE_INFINITY),
  ])
    expect(unpacked(damaged)).toBeUndefined()
})
