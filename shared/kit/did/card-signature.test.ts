import { createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { cardAddresses } from '@parley/wire/codecs/signed-card'
import { expect, test } from 'vitest'
import { cardDigest, signCard, verifyCard } from './card-signature.ts'
import { keyPairFromSeed } from './keys.ts'
import { signPart } from './part-signature.ts'
import vectors from './vectors/signed-cards.json' with { type: 'json' }

const key = keyPairFromSeed(Buffer.alloc(32, 7))
const kid = 'did:x#key-1'
const signer = { alg: 'EdDSA', kid, sign: (bytes: Uint8Array) => key.sign(bytes) } as const
const x = Buffer.from(key.publicKey).toString('base64url')
const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
const keyOf = (id: string) => (id === kid ? publicKey : undefined)

const card: Record<string, unknown> = {
  name: 'Ada',
  description: 'adds',
  version: '1',
  supportedInterfaces: [{ url: 'http://a/a2a/v1', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: true },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'add', name: 'Add', description: 'sums', tags: ['math'] }],
}
const signaturesOf = (signed: ReturnType<typeof signCard>) => signed.signatures ?? []
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

test('a card with the fields of A2A 1.0 and no security has one signature, which covers every field', async () => {
  const signed = signCard(card, [signer])
  expect(signaturesOf(signed)).toHaveLength(1)
  expect(await verifyCard(signed, keyOf)).toEqual({ verified: true, kid, alg: 'EdDSA', covers: 'card' })
  const [{ protected: header } = {}] = signaturesOf(signed)
  expect(JSON.parse(Buffer.from(header ?? '', 'base64url').toString())).toEqual({
    alg: 'EdDSA',
    typ: 'JOSE',
    kid,
  })
})

test.each<[string, Record<string, unknown>]>([
  ['another name', { name: 'Eve' }],
  ['another address', { supportedInterfaces: [{ url: 'http://evil' }] }],
  ['a changed skill', { skills: [{ id: 'add', name: 'Add', description: 'steals', tags: ['math'] }] }],
])('a signed card with %s does not verify', async (_what, change) => {
  const verdict = await verifyCard({ ...signCard(card, [signer]), ...change }, keyOf)
  expect(verdict).toMatchObject({ verified: false, reason: 'mismatch' })
})

test.each<[string, Record<string, unknown>, string]>([
  ['a field that A2A 1.0 does not have', { url: 'http://evil' }, 'a2a'],
  [
    'security schemes',
    { securitySchemes: { key: { apiKeySecurityScheme: { location: 'header', name: 'x' } } } },
    'a2a-without-security',
  ],
])('the signature of a card to which %s are added does not cover them', async (_what, added, covers) => {
  const verdict = await verifyCard({ ...signCard(card, [signer]), ...added }, keyOf)
  expect(verdict).toMatchObject({ verified: true, covers })
})

test('the signature of a card of A2A 0.3 covers its addresses, not those of 1.0', () => {
  const given = { ...card, url: 'http://a/a2a/v0.3', additionalInterfaces: [{ url: 'http://b' }] }
  expect(cardAddresses(given, 'a2a-v03')).toEqual(['http://b', 'http://a/a2a/v0.3'])
  expect(cardAddresses(given, 'a2a')).toEqual(['http://a/a2a/v1'])
})

test.each(vectors.by_sdks)('a card that $sdk signed verifies', async ({ card: signed, covers }) => {
  const es256 = createPublicKey({ key: vectors.es256_public_key, format: 'jwk' })
  const of = (_kid: string, alg: string) => (alg === 'ES256' ? es256 : undefined)
  expect(await verifyCard(signed, of)).toMatchObject({ verified: true, alg: 'ES256', covers })
  expect(await verifyCard({ ...signed, version: '2' }, of)).toMatchObject({ reason: 'mismatch' })
})

test.each(vectors.by_parley)('cards are signed as the verifiers of the SDKs expect (%#)', async (signed) => {
  expect(signCard({ ...signed, signatures: ['replaced'] }, [signer])).toEqual(signed)
  expect(await verifyCard(signed, keyOf)).toMatchObject({ verified: true, covers: 'card' })
})

test('ES256 signatures verify', async () => {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const es256 = {
    alg: 'ES256',
    kid,
    sign: (bytes: Uint8Array) => sign('sha256', bytes, { key: pair.privateKey, dsaEncoding: 'ieee-p1363' }),
  } as const
  const signed = signCard(card, [signer, es256])
  expect(signaturesOf(signed)).toHaveLength(2)
  const es256Only = (_kid: string, alg: string) => (alg === 'ES256' ? pair.publicKey : undefined)
  expect(await verifyCard(signed, es256Only)).toMatchObject({ verified: true, alg: 'ES256' })
})

test.each<[string, unknown, string]>([
  ['no signature', undefined, 'unsigned'],
  ['signatures that are no list', { 0: 1 }, 'unsigned'],
  ['a signature that is no object', ['x'], 'malformed'],
  ['a header that is not base64url', [{ protected: '💥', signature: 'AA' }], 'malformed'],
  ['no kid', [{ protected: encode({ alg: 'EdDSA' }), signature: 'AA' }], 'malformed'],
  ['a header that is too long', [{ protected: 'A'.repeat(5000), signature: 'AA' }], 'malformed'],
  ['alg none', [{ protected: encode({ alg: 'none', kid }), signature: '' }], 'malformed'],
  ['alg HS256', [{ protected: encode({ alg: 'HS256', kid }), signature: 'AA' }], 'unsupported_algorithm'],
  [
    'an unknown kid',
    [{ protected: encode({ alg: 'EdDSA', kid: 'did:y#1' }), signature: 'AA' }],
    'unknown_key',
  ],
  [
    'an empty signature of 64 bytes',
    [{ protected: encode({ alg: 'EdDSA', kid }), signature: 'A'.repeat(86) }],
    'mismatch',
  ],
  [
    '1000 signatures',
    Array.from({ length: 1000 }, () => ({ protected: 'e30', signature: 'AA' })),
    'too_many_signatures',
  ],
])('a card with %s does not verify', async (_what, signatures, reason) => {
  expect(await verifyCard({ ...card, signatures }, keyOf)).toMatchObject({ verified: false, reason })
})

test('a key in the header and a jku are ignored', async () => {
  const attacker = keyPairFromSeed(Buffer.alloc(32, 9))
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(attacker.publicKey).toString('base64url') }
  const header = { alg: 'EdDSA', typ: 'JOSE', kid, jku: 'https://evil.example/keys', jwk }
  const signed = signCard(card, [{ ...signer, sign: (bytes) => attacker.sign(bytes) }])
  const [{ signature } = {}] = signaturesOf(signed)
  const asked: string[] = []
  const verdict = await verifyCard(
    { ...card, signatures: [{ protected: encode(header), signature }] },
    (id) => {
      asked.push(id)
      return keyOf(id)
    },
  )
  expect([verdict, asked]).toEqual([expect.objectContaining({ reason: 'mismatch' }), [kid]])
})

test('at most four keys are looked up for one card', async () => {
  const asked: string[] = []
  const signatures = Array.from({ length: 16 }, (_, i) => ({
    protected: encode({ alg: 'EdDSA', kid: `did:x#key-${i}` }),
    signature: 'AA',
  }))
  await verifyCard({ ...card, signatures }, (id) => void asked.push(id))
  expect(asked).toHaveLength(4)
})

test('an agent that echoes its input does not sign cards of others', () => {
  const [{ protected: header } = {}] = signaturesOf(signCard(card, [signer]))
  const isSigned = (text: string) => signPart({ kind: 'text', text }, key).metadata
  const spaced = Buffer.from(' {"alg":"EdDSA"}').toString('base64url')
  for (const text of [`${header}.${encode(card)}`, `${spaced}.x`, `${encode({ alg: 'EdDSA' })}=.x.y`])
    expect(isSigned(text)).toEqual({})
  expect(isSigned('Done.')).toHaveProperty(['did.message.signature'])
})

test('cards with a lone surrogate are not signed and have no digest', () => {
  const lone = { ...card, name: '\ud800' }
  expect(signCard(lone, [signer])).toEqual(lone)
  expect([cardDigest(lone), cardDigest(card)]).toEqual([undefined, expect.stringMatching(/^[\da-f]{64}$/)])
})
