import { readFileSync } from 'node:fs'
import bs58 from 'bs58'
import { describe, expect, test } from 'vitest'
import { keyPairFromSeed } from './keys.ts'
import { rawSigningText, readSignature, signingText, signRequest, verifySigned } from './signature.ts'

interface Case {
  name: string
  seed_hex: string
  did: string
  body: string
  timestamp: number
  signed_ascii: string
  signed_utf8: string
  public_key_base58: string
  signature_ascii: string
  signature_utf8: string
}

const file = readFileSync(new URL('./vectors/did-signature.json', import.meta.url), 'utf8')
const { cases } = JSON.parse(file) as { cases: Case[] }
const key = keyPairFromSeed(Buffer.alloc(32, 3))
const bytesOf = (base58: string) => readSignature(base58) as Uint8Array

describe.each(cases)('the vector "$name"', (vector) => {
  const { did, body, timestamp } = vector
  const pair = keyPairFromSeed(Buffer.from(vector.seed_hex, 'hex'))

  test('the key pair is derived from the seed', () => {
    expect(pair.publicKeyBase58).toBe(vector.public_key_base58)
  })

  test('both forms of the signed text match the vector', () => {
    expect(signingText({ did, body, timestamp })).toBe(vector.signed_ascii)
    expect(rawSigningText({ did, body, timestamp })).toBe(vector.signed_utf8)
  })

  test('signs the escaped form', () => {
    expect(signRequest({ did, key: pair, body, timestamp })).toEqual({
      'x-did': did,
      'x-did-timestamp': String(timestamp),
      'x-did-signature': vector.signature_ascii,
    })
    expect(bs58.encode(pair.sign(Buffer.from(vector.signed_utf8)))).toBe(vector.signature_utf8)
  })

  test('accepts both forms, but not for another body, DID, time or key', () => {
    const signed = { did, body, timestamp }
    for (const signature of [vector.signature_ascii, vector.signature_utf8].map(bytesOf)) {
      expect(verifySigned(signed, signature, pair.publicKey)).toBe(true)
      expect(verifySigned({ ...signed, body: `${body} ` }, signature, pair.publicKey)).toBe(false)
      expect(verifySigned({ ...signed, did: `${did}x` }, signature, pair.publicKey)).toBe(false)
      expect(verifySigned({ ...signed, timestamp: timestamp + 1 }, signature, pair.publicKey)).toBe(false)
      expect(verifySigned(signed, signature, key.publicKey)).toBe(false)
    }
  })
})

test('a lone surrogate is signed as the replacement character that is sent', () => {
  const { 'x-did-signature': signature } = signRequest({
    did: 'did:x:y',
    key,
    body: 'a\ud800b',
    timestamp: 1,
  })
  const sent = Buffer.from('a\ud800b').toString()
  expect(verifySigned({ did: 'did:x:y', body: sent, timestamp: 1 }, bytesOf(signature), key.publicKey)).toBe(
    true,
  )
})

test.each([
  ['an empty text', ''],
  ['the invalid character 0', `0${'1'.repeat(63)}`],
  ['the invalid character O', `O${'2'.repeat(87)}`],
  ['the invalid character I', `I${'2'.repeat(87)}`],
  ['the invalid character l', `l${'2'.repeat(87)}`],
  ['white space', ` ${'2'.repeat(87)}`],
  ['emoji', '😀'.repeat(44)],
  ['63 bytes', bs58.encode(Buffer.alloc(63, 7))],
  ['65 bytes', bs58.encode(Buffer.alloc(65, 7))],
  ['65 zero bytes', '1'.repeat(65)],
  ['10,000 letters', '2'.repeat(10_000)],
])('does not read %s as a signature', (_what, text) => {
  expect(readSignature(text)).toBeUndefined()
})

test('the longest and the shortest encoding of 64 bytes are read', () => {
  expect(readSignature(bs58.encode(Buffer.alloc(64, 255)))).toHaveLength(64)
  expect(readSignature('1'.repeat(64))).toHaveLength(64)
})
