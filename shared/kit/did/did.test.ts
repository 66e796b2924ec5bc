import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { didPart, keyId, makeDid } from './did.ts'

const publicKey = new Uint8Array(32).fill(7)

test('a DID ends with a UUID made of the first 16 bytes of the SHA-256 of the raw key', () => {
  const hex = createHash('sha256').update(publicKey).digest('hex').slice(0, 32)
  expect(keyId(publicKey).replaceAll('-', '')).toBe(hex)
  expect(keyId(publicKey)).toMatch(/^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/)
  expect(makeDid({ author: 'Ann Lee@Example.org', name: 'agent', publicKey })).toBe(
    `did:parley:ann_lee_at_example_org:agent:${keyId(publicKey)}`,
  )
})

test.each([
  ['Parley', 'parley'],
  ['a b', 'a_b'],
  ['a@b.c', 'a_at_b_c'],
  ['x-1_y', 'x-1_y'],
])('%s becomes %s', (text, part) => {
  expect(didPart(text, 'author')).toBe(part)
})

test.each(['', 'a:b', 'a/b', 'a#b', 'é', 'a\nb', 'a%20b', 'x'.repeat(129)])('%j is refused', (text) => {
  expect(() => didPart(text, 'author')).toThrow('The author of a DID')
})
