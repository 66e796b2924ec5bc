import { createPublicKey, verify } from 'node:crypto'
import { expect, test } from 'vitest'
import { keyPairFromSeed } from './keys.ts'

test('signatures verify as Ed25519', () => {
  const pair = keyPairFromSeed(new Uint8Array(32).fill(1))
  const message = Buffer.from('a message')
  const key = createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(pair.publicKey).toString('base64url') },
    format: 'jwk',
  })
  expect(verify(null, message, key, pair.sign(message))).toBe(true)
  expect(verify(null, Buffer.from('another'), key, pair.sign(message))).toBe(false)
})

test.each([0, 31, 33, 64])('a seed of %i bytes is refused', (length) => {
  expect(() => keyPairFromSeed(new Uint8Array(length))).toThrow('32 bytes')
})
