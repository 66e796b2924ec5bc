import type { Part } from '@parley/wire/model/task'
import bs58 from 'bs58'
import { describe, expect, test } from 'vitest'
import { keyPairFromSeed } from './keys.ts'
import {
  partKey,
  partSignature,
  type SignedPart,
  signPart,
  verifyPart,
  verifyParts,
} from './part-signature.ts'
import { signingText } from './signature.ts'

const key = keyPairFromSeed(Buffer.alloc(32, 1))
const other = keyPairFromSeed(Buffer.alloc(32, 2))
const keys = [key.publicKeyBase58]

const parts: Record<string, Part> = {
  text: { kind: 'text', text: 'naïve 😀' },
  'an empty text': { kind: 'text', text: '' },
  data: { kind: 'data', data: { b: [1.0, 1e21, -0, 'é', null], a: { z: true, '\u20ac': 1 } } },
  file: { kind: 'file', file: { name: 'ü.txt', mimeType: 'text/plain', bytes: 'aGk=' } },
  'a file without a name': { kind: 'file', file: { bytes: '' } },
}
const wire = (part: Part): SignedPart => {
  if (part.kind !== 'file') return part
  const { mimeType, ...file } = part.file
  return { ...part, file: { ...file, ...(mimeType !== undefined && { mime_type: mimeType }) } }
}

describe.each(Object.entries(parts))('%s', (_name, part) => {
  const signed = signPart(part, key)

  test('a signed part has the signature and key, and verifies in the model and on the wire', () => {
    expect(signed.metadata).toEqual({ [partSignature]: expect.any(String), [partKey]: key.publicKeyBase58 })
    expect(verifyPart(signed, keys)).toBe('verified')
    expect(verifyPart(JSON.parse(JSON.stringify(wire(signed))), keys)).toBe('verified')
    expect(verifyPart(signed, [other.publicKeyBase58, ...keys])).toBe('verified')
  })

  test('another key, a wrong signature and a missing signature have different verdicts', () => {
    expect(verifyPart(signed, [other.publicKeyBase58])).toBe('another_key')
    expect(verifyPart(signPart(part, other), keys)).toBe('another_key')
    const lies = {
      ...signed,
      metadata: { ...signPart(part, other).metadata, [partKey]: key.publicKeyBase58 },
    }
    expect(verifyPart(lies, keys)).toBe('crypto_mismatch')
    expect(verifyPart(part, keys)).toBe('unsigned')
    for (const wrong of ['', '0OIl', 7, {}, 'x'.repeat(10_000)]) {
      expect(verifyPart({ ...signed, metadata: { ...signed.metadata, [partSignature]: wrong } }, keys)).toBe(
        'malformed_input',
      )
    }
  })

  test('an existing signature is removed, and the rest of the metadata is kept', () => {
    const before = { ...part, metadata: { [partSignature]: 'forged', [partKey]: 'forged', page: 1 } }
    expect(signPart(before, key).metadata).toEqual({ ...signed.metadata, page: 1 })
    expect(before.metadata[partKey]).toBe('forged')
  })
})

test.each<[string, Part, Part]>([
  ['a text', { kind: 'text', text: 'a' }, { kind: 'text', text: 'b' }],
  ['data', { kind: 'data', data: { a: 1 } }, { kind: 'data', data: { a: 2 } }],
  ['bytes', { kind: 'file', file: { bytes: 'aGk=' } }, { kind: 'file', file: { bytes: 'aGo=' } }],
  [
    'a name',
    { kind: 'file', file: { name: 'a', bytes: '' } },
    { kind: 'file', file: { name: 'b', bytes: '' } },
  ],
  ['a type', { kind: 'file', file: { mimeType: 'a/b', bytes: '' } }, { kind: 'file', file: { bytes: '' } }],
])('changing %s after signing results in crypto_mismatch', (_what, part, changed) => {
  const { metadata = {} } = signPart(part, key)
  expect(verifyPart({ ...changed, metadata }, keys)).toBe('crypto_mismatch')
})

test('neither the order of data fields nor their spelling on the wire affects verification', () => {
  const { metadata = {} } = signPart({ kind: 'data', data: { a: 1, b: 'é' } }, key)
  expect(verifyPart({ kind: 'data', data: JSON.parse('{"b":"\\u00e9","a":1.0}'), metadata }, keys)).toBe(
    'verified',
  )
})

test('data is signed in its RFC 8785 form, text as UTF-8', () => {
  const signature = (part: Part) => signPart(part, key).metadata?.[partSignature]
  const by = (text: string) => bs58.encode(key.sign(Buffer.from(text)))
  expect(signature({ kind: 'text', text: 'é' })).toBe(by('é'))
  expect(signature({ kind: 'data', data: { b: 1e2, a: 'é' } })).toBe(by('{"a":"é","b":100}'))
  expect(signature({ kind: 'file', file: { name: 'n', mimeType: 'a/b', bytes: 'aGk=' } })).toBe(
    by('{"bytes":"aGk=","mime_type":"a/b","name":"n"}'),
  )
})

test('a file signed in camelCase verifies too', () => {
  const bytes = Buffer.from('{"bytes":"aGk=","mimeType":"a/b"}')
  const metadata = { [partSignature]: bs58.encode(key.sign(bytes)) }
  expect(verifyPart({ kind: 'file', file: { mimeType: 'a/b', bytes: 'aGk=' }, metadata }, keys)).toBe(
    'verified',
  )
})

test('a text that is a request to be signed is not signed', () => {
  const text = signingText({ did: 'did:parley:a:agent:1', body: '{}', timestamp: 1 })
  expect(signPart({ kind: 'text', text, metadata: { [partSignature]: 'x' } }, key).metadata).toEqual({})
  expect(signPart({ kind: 'data', data: JSON.parse(text) }, key).metadata).toHaveProperty([partSignature])
})

const header = '{"alg":"EdDSA","kid":"did:parley:a:agent:1#key-1"}'
const payload = Buffer.from('{"name":"forged"}').toString('base64url')
const encoded = Buffer.from(header).toString('base64url')

test.each([
  ['as specified', `${encoded}.${payload}`],
  ['with another payload', `${encoded}.e30`],
  ['with characters that decoders skip', `${encoded.slice(0, 3)}!!!!\n${encoded.slice(3)}.e30`],
  ['in UTF-16', `${Buffer.from(header, 'utf16le').toString('base64')}.e30`],
  ['in UTF-16 with a byte order mark', `${Buffer.from(`\ufeff${header}`, 'utf16le').toString('base64')}.e30`],
  ['after spaces', `${Buffer.from(`  {  ${header.slice(1)}`).toString('base64url')}.e30`],
  ['in another encoding', `?.${payload}`],
  ['without a header', `.${payload}`],
])('a text that is the signing input of a JWS with a header %s is not signed', (_how, text) => {
  expect(signPart({ kind: 'text', text }, key).metadata).toEqual({})
})

test.each(['.NET runs it.', 'e.g. this', 'eyes. And ears.', 'a.b.c', 'See https://a.example/eyJ.', '0.5'])(
  'the text "%s" is signed',
  (text) => {
    expect(verifyPart(signPart({ kind: 'text', text }, key), keys)).toBe('verified')
  },
)

test('data without an RFC 8785 form is not signed and never verifies', () => {
  const data = { a: '\ud800' }
  expect(signPart({ kind: 'data', data }, key).metadata).toEqual({})
  const { metadata = {} } = signPart({ kind: 'data', data: {} }, key)
  expect(verifyPart({ kind: 'data', data, metadata }, keys)).toBe('crypto_mismatch')
})

test('verifies each part of a task', () => {
  const artifacts = [
    { name: 'result', parts: [signPart(parts['text'] as Part, key), parts['data'] as Part] },
    { name: 'file', parts: [signPart(parts['file'] as Part, other)] },
  ]
  expect(verifyParts({ artifacts }, keys)).toEqual([
    { artifact: 'result', part: 0, kind: 'text', verdict: 'verified' },
    { artifact: 'result', part: 1, kind: 'data', verdict: 'unsigned' },
    { artifact: 'file', part: 0, kind: 'file', verdict: 'another_key' },
  ])
})
