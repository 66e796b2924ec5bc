import { readFileSync } from 'node:fs'
import nacl from 'tweetnacl'
import { describe, expect, test } from 'vitest'
import { isAcceptableKey, signerOf, verifyEd25519 } from './ed25519.ts'
import { RecentMap } from './recent-map.ts'

const hex = (text: string) => Buffer.from(text, 'hex')
const vectors = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`./vectors/${name}`, import.meta.url), 'utf8'))

interface Wycheproof {
  numberOfTests: number
  testGroups: {
    publicKey: { pk: string }
    tests: { tcId: number; comment: string; msg: string; sig: string; result: 'valid' | 'invalid' }[]
  }[]
}

describe('every Wycheproof case has the expected result', () => {
  const { numberOfTests, testGroups } = vectors('wycheproof-ed25519.json') as Wycheproof
  const cases = testGroups.flatMap(({ publicKey, tests }) =>
    tests.map((one) => ({ ...one, pk: publicKey.pk })),
  )

  test('all cases are present', () => {
    expect(cases).toHaveLength(numberOfTests)
    expect(numberOfTests).toBe(151)
  })

  test.each(cases)('$tcId $comment: $result', ({ pk, msg, sig, result }) => {
    expect(verifyEd25519(hex(pk), hex(msg), hex(sig))).toBe(result === 'valid')
  })
})

/** The cases from table 5 of the paper "Taming the many EdDSAs", with the expected results. */
const speccheck: [what: string, accepted: boolean][] = [
  ['S = 0, small-order A and R', false],
  ['small-order A, mixed-order R', false],
  ['mixed-order A, small-order R', false],
  ['mixed-order A and R', true],
  ['only cofactored verification succeeds', false],
  ['only cofactored verification succeeds, k reduced before', false],
  ['S > L', false],
  ['S ≫ L', false],
  ['non-canonical R, reduced in the hash', false],
  ['non-canonical R, unreduced in the hash', false],
  ['non-canonical A, reduced in the hash', false],
  ['non-canonical A, unreduced in the hash', false],
]

describe('small-order and non-canonical points from ed25519-speccheck are rejected', () => {
  const cases = vectors('ed25519-speccheck.json') as { message: string; pub_key: string; signature: string }[]

  test.each(speccheck.map(([what, accepted], i) => ({ i, what, accepted, ...cases[i] })))(
    '$i $what: accepted $accepted',
    ({ pub_key = '', message = '', signature = '', accepted }) => {
      expect(verifyEd25519(hex(pub_key), hex(message), hex(signature))).toBe(accepted)
    },
  )
})

describe('keys', () => {
  const p = 2n ** 255n - 19n
  const littleEndian = (y: bigint, sign = 0) => {
    const bytes = Buffer.from(y.toString(16).padStart(64, '0'), 'hex').reverse()
    bytes[31] = (bytes[31] as number) | (sign << 7)
    return bytes
  }
  const ofOrder8 = 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa'

  test.each([
    ['y = 0', littleEndian(0n)],
    ['y = 0, the other sign', littleEndian(0n, 1)],
    ['y = 1', littleEndian(1n)],
    ['y = 1 with the sign bit, although x = 0', littleEndian(1n, 1)],
    ['y = −1', littleEndian(p - 1n)],
    ['order 8', hex(ofOrder8)],
    ['order 8, the other sign', hex(ofOrder8.replace(/fa$/, '7a'))],
    [
      'order 8, −y',
      littleEndian(p - BigInt(`0x${hex(ofOrder8.replace(/fa$/, '7a')).reverse().toString('hex')}`)),
    ],
    ['y = p', littleEndian(p)],
    ['y = p + 1', littleEndian(p + 1n)],
    ['y = p + 18, the largest encodable value', littleEndian(p + 18n)],
    ['31 bytes', Buffer.alloc(31, 9)],
    ['33 bytes', Buffer.alloc(33, 9)],
    ['no bytes', Buffer.alloc(0)],
  ])('the key %s is rejected and verifies nothing', (_what, key) => {
    expect(isAcceptableKey(key)).toBe(false)
    expect(verifyEd25519(key, Buffer.from('x'), Buffer.alloc(64))).toBe(false)
  })

  test('y = p − 2 is canonical', () => {
    expect(isAcceptableKey(littleEndian(p - 2n))).toBe(true)
  })

  test('the y of the base point is accepted, and a key that is not on the curve verifies nothing', () => {
    expect(isAcceptableKey(hex(`58${'66'.repeat(31)}`))).toBe(true)
    expect(verifyEd25519(littleEndian(2n), Buffer.from('x'), Buffer.alloc(64, 5))).toBe(false)
  })
})

describe('signing', () => {
  test.each([0, 1, 31, 64, 1000])('node:crypto signs %s bytes as tweetnacl does', (length) => {
    const seed = Buffer.alloc(32, length % 251)
    const message = Buffer.alloc(length, 0xa5)
    const theirs = nacl.sign.detached(message, nacl.sign.keyPair.fromSeed(seed).secretKey)
    expect(Buffer.from(signerOf(seed)(message)).equals(theirs)).toBe(true)
  })

  test.each([63, 65, 0])('a signature of %s bytes is refused', (length) => {
    const { publicKey } = nacl.sign.keyPair.fromSeed(Buffer.alloc(32, 1))
    const signature = Buffer.concat([signerOf(Buffer.alloc(32, 1))(Buffer.from('x')), Buffer.alloc(1)])
    expect(verifyEd25519(publicKey, Buffer.from('x'), signature.subarray(0, 64))).toBe(true)
    expect(verifyEd25519(publicKey, Buffer.from('x'), signature.subarray(0, length))).toBe(false)
  })
})

test('a recent map keeps the most recently read entries', () => {
  const map = new RecentMap<string, number>(2)
  map.set('a', 1)
  map.set('b', 2)
  expect(map.get('a')).toBe(1)
  map.set('c', 3)
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([1, undefined, 3])
})
