import { randomBytes } from 'node:crypto'
import bs58 from 'bs58'
import { expect, test } from 'vitest'
import { readBase58, writeBase58 } from './base58.ts'

const samples = [0, 1, 2, 31, 32, 33, 63, 64, 65].flatMap((length) => [
  Buffer.alloc(length),
  Buffer.alloc(length, 255),
  Buffer.concat([Buffer.alloc(3), randomBytes(length)]).subarray(0, length),
  ...Array.from({ length: 50 }, () => randomBytes(length)),
])

test('bytes are encoded as bs58 encodes them', () => {
  for (const bytes of samples) expect(writeBase58(bytes)).toBe(bs58.encode(bytes))
})

test('text encoded by bs58 is decoded only with the exact length', () => {
  for (const bytes of samples) {
    const text = bs58.encode(bytes)
    for (const length of [32, 64]) {
      const read = readBase58(text, length)
      expect(read === undefined ? undefined : Buffer.from(read)).toEqual(
        bytes.length === length ? bytes : undefined,
      )
    }
  }
})

test('every accepted text is decoded as bs58 decodes it', () => {
  const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0OIl +é'
  for (let i = 0; i < 2000; i += 1) {
    const ones = '1'.repeat(Math.floor(Math.random() * 3) * Math.floor(Math.random() * 30))
    const letters = Array.from(randomBytes(40 + (i % 50)), (byte) => alphabet[byte % (i % 3 === 0 ? 65 : 58)])
    const text = ones + letters.join('')
    const theirs = bs58.decodeUnsafe(text)
    const read = readBase58(text, 64)
    expect(read === undefined ? undefined : Buffer.from(read)).toEqual(
      theirs?.byteLength === 64 ? Buffer.from(theirs) : undefined,
    )
  }
})
