import { keyPairFromSeed } from '@parley/kit/did/keys'
import { expect, test } from 'vitest'
import { AuthoritySeal } from './authority-seal.ts'

const key = keyPairFromSeed(Buffer.alloc(32, 1))
const seal = new AuthoritySeal(key)

test('a sealed token opens with the key of the agent only, and shows nothing of the token', () => {
  const sealed = seal.seal('Bearer pxt_secret')
  expect(seal.open(sealed)).toBe('pxt_secret')
  expect(new AuthoritySeal(keyPairFromSeed(Buffer.alloc(32, 1))).open(sealed)).toBe('pxt_secret')
  expect(new AuthoritySeal(keyPairFromSeed(Buffer.alloc(32, 2))).open(sealed)).toBeUndefined()
  expect(Buffer.from(sealed, 'base64url').toString('latin1')).not.toContain('secret')
  expect(seal.seal('Bearer pxt_secret')).not.toBe(sealed)
})

test('a changed or truncated text does not open', () => {
  const bytes = Buffer.from(seal.seal('bearer abc'), 'base64url')
  for (let at = 0; at < bytes.byteLength; at += 1) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(seal.open(changed.toString('base64url'))).toBeUndefined()
    expect(seal.open(bytes.subarray(0, at).toString('base64url'))).toBeUndefined()
  }
  expect(seal.open('not sealed')).toBeUndefined()
})

test('secrets for different purposes differ, and none is the seed', () => {
  const secrets = ['a', 'b'].map((purpose) => Buffer.from(key.deriveSecret(purpose)).toString('hex'))
  expect(new Set([...secrets, Buffer.alloc(32, 1).toString('hex')]).size).toBe(3)
})
