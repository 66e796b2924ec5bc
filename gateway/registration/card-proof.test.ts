import { ECDH, generateKeyPairSync, sign } from 'node:crypto'
import { type CardAlgorithm, signCard } from '@parley/kit/did/card-signature'
import { keyPairFromSeed } from '@parley/kit/did/keys'
import { noExceptions } from '@parley/kit/net/allowed-hosts'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import bs58 from 'bs58'
import { expect, test } from 'vitest'
import { DidDocuments } from '../did/did-documents.ts'
import { verifyCardProof } from './card-proof.ts'
import { fetchAgent } from './fetch-agent.ts'

const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const { x = '', y = '' } = pair.publicKey.export({ format: 'jwk' })
const seeded = keyPairFromSeed(Buffer.alloc(32, 3))
const signers: Record<CardAlgorithm, (bytes: Uint8Array) => Uint8Array> = {
  ES256: (bytes) => sign('sha256', bytes, { key: pair.privateKey, dsaEncoding: 'ieee-p1363' }),
  EdDSA: (bytes) => seeded.sign(bytes),
}

const url = 'https://agents.example/calc'
const web = 'did:web:agents.example'

function signedCard(kid: string, alg: CardAlgorithm = 'ES256', interfaceUrl = `${url}/a2a`): JsonObject {
  const card = {
    name: 'Calc',
    description: 'adds',
    version: '1',
    supportedInterfaces: [{ url: interfaceUrl, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: {},
    skills: [],
  }
  return jsonObjectOf(JSON.stringify(signCard(card, [{ alg, kid, sign: signers[alg] }]))) ?? {}
}

const documentOf = (did: string, more: JsonObject = {}): JsonObject => ({
  id: did,
  verificationMethod: [
    { id: '#card', type: 'JsonWebKey2020', publicKeyJwk: { kty: 'EC', crv: 'P-256', x, y } },
    { id: `${did}#ed`, type: 'Ed25519VerificationKey2020', publicKeyBase58: seeded.publicKeyBase58 },
  ],
  assertionMethod: ['#card'],
  authentication: ['#ed'],
  ...more,
})

const prove = (card: JsonObject, document: JsonObject | undefined, at = url) =>
  verifyCardProof(card, { url: at, resolve: async () => document })

test.each<[CardAlgorithm, string]>([
  ['ES256', 'card'],
  ['EdDSA', 'ed'],
])('a card that a did:web of the same origin signed with %s is verified', async (alg, fragment) => {
  const kid = `${web}#${fragment}`
  const proof = await prove(signedCard(kid, alg), documentOf(web))
  expect(proof).toEqual({ verified: true, did: web, kid, covers: 'card' })
})

test('ES256 keys of a did:key, and of a did:web as a Multikey, verify cards', async () => {
  const joined = Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')])
  const compressed = ECDH.convertKey(joined, 'prime256v1', undefined, undefined, 'compressed')
  const multibase = `z${bs58.encode(Buffer.concat([Buffer.from([0x80, 0x24]), Buffer.from(compressed)]))}`
  const didKey = `did:key:${multibase}`
  const documents = new DidDocuments({
    own: () => undefined,
    readExternal: () => Promise.reject(new Error()),
  })
  const ofKey = signedCard(`${didKey}#${multibase}`, 'ES256')
  const proof = await verifyCardProof(ofKey, { url, resolve: (did) => documents.resolve(did) })
  expect(proof).toMatchObject({ verified: true, did: didKey })
  const multikey = (publicKeyMultibase: string) => ({
    verificationMethod: [{ id: '#card', type: 'Multikey', publicKeyMultibase }],
  })
  const ofWeb = signedCard(`${web}#card`, 'ES256')
  expect(await prove(ofWeb, documentOf(web, multikey(multibase)))).toMatchObject({ verified: true })
  for (const other of [
    `z${bs58.encode(Buffer.alloc(35, 1))}`,
    multibase.slice(0, -1),
    `Q${multibase.slice(1)}`,
  ])
    expect(await prove(ofWeb, documentOf(web, multikey(other)))).toMatchObject({ reason: 'unknown_key' })
})

test.each<[string, string, string, boolean]>([
  ['another origin', 'did:web:other.example', url, false],
  ['another port', 'did:web:agents.example%3A8443', url, false],
  ['a folder above the address', 'did:web:agents.example:calc', url, true],
  ['another folder', 'did:web:agents.example:cal', url, false],
  ['the same origin without TLS', web, 'http://agents.example/calc', false],
])('a did:web of %s (%s) speaks for %s: %s', async (_what, did, at, verified) => {
  const proof = await prove(signedCard(`${did}#card`), documentOf(did), at)
  expect(proof).toMatchObject(verified ? { verified } : { verified, reason: 'other_origin' })
})

test('a card of another DID is verified if it lists an interface at the address', async () => {
  const did = 'did:key:z6Mkexample'
  const card = signedCard(`${did}#card`)
  expect(await prove(card, documentOf(did))).toMatchObject({ verified: true, did })
  const copied = await prove(card, documentOf(did), 'https://evil.example')
  expect(copied).toMatchObject({ verified: false, reason: 'other_address' })
  const added = { ...card, url: 'https://evil.example' }
  expect(await prove(added, documentOf(did), 'https://evil.example')).toMatchObject({ verified: false })
})

test.each<[string, JsonObject | undefined, string]>([
  ['that cannot be resolved', undefined, 'unknown_key'],
  ['with the document of another DID', documentOf('did:web:other.example'), 'unknown_key'],
  ['whose key signs no statements', documentOf(web, { assertionMethod: [] }), 'unknown_key'],
  [
    'whose key belongs to another controller',
    documentOf(web, {
      verificationMethod: [],
      assertionMethod: [
        {
          id: '#card',
          type: 'JsonWebKey2020',
          controller: 'did:web:other.example',
          publicKeyJwk: { kty: 'EC', crv: 'P-256', x, y },
        },
      ],
    }),
    'unknown_key',
  ],
  [
    'with a key that is not on the curve',
    documentOf(web, {
      verificationMethod: [],
      assertionMethod: [
        { id: '#card', type: 'JsonWebKey2020', publicKeyJwk: { kty: 'EC', crv: 'P-256', x, y: x } },
      ],
    }),
    'unknown_key',
  ],
])('a card of a DID %s is not verified', async (_what, document, reason) => {
  expect(await prove(signedCard(`${web}#card`), document)).toMatchObject({ verified: false, reason })
})

test.each([
  ['key-1', 'unknown_key'],
  ['https://evil.example/key#1', 'unknown_key'],
])('the key "%s" is not resolved', async (kid, reason) => {
  const resolve = () => expect.fail('must not be resolved')
  const proof = await verifyCardProof(signedCard(kid), { url, resolve })
  expect(proof).toMatchObject({ verified: false, reason })
})

test('a resolver that fails does not fail the check', async () => {
  const resolve = () => Promise.reject(new Error('network'))
  const proof = await verifyCardProof(signedCard(`${web}#card`), { url, resolve })
  expect(proof).toMatchObject({ reason: 'unknown_key' })
})

test('an unsigned card is not verified, with a reason', async () => {
  expect(await prove({ name: 'Calc' }, undefined)).toEqual({
    verified: false,
    reason: 'unsigned',
    message: 'The card has no signature.',
  })
})

/** A card that lists an interface which the gateway does not support. */
const overGrpc = {
  name: 'Calc',
  description: 'adds',
  version: '1',
  supportedInterfaces: [{ url: `${url}/a2a`, protocolBinding: 'GRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: true },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'add', name: 'Add', description: 'adds', tags: ['sum'] }],
}

test('a signature over the fields of A2A does not count for an address in another field', async () => {
  const key = { alg: 'ES256', kid: `${web}#card`, sign: signers.ES256 } as const
  // The SDKs sign only the fields that they know.
  const signed = signCard(overGrpc, [key])
  const card = { ...signed, protocolVersion: '0.3.0', url: 'https://evil.example/a2a' }
  expect(await prove(jsonObjectOf(JSON.stringify(card)) ?? {}, documentOf(web))).toMatchObject({
    verified: true,
    covers: 'a2a',
  })
  const client = { allowed: noExceptions, get: async () => ({ status: 200, json: card }) }
  const found = await fetchAgent(url, { client: client as never, resolve: async () => documentOf(web) })
  expect(found).toMatchObject({
    relay: { url: 'https://evil.example/a2a' },
    cardSignature: { verified: false, reason: 'other_address' },
  })
})

test.each([
  ['a signed', signedCard(`${web}#card`), { verified: true, kid: `${web}#card` }],
  ['an unsigned', { ...signedCard(''), signatures: [] }, { verified: false, reason: 'unsigned' }],
])('registration notes the signature of %s foreign card', async (_what, card, cardSignature) => {
  const client = {
    allowed: noExceptions,
    get: async (address: string) => ({ status: address.endsWith('agent-card.json') ? 200 : 404, json: card }),
  }
  const found = await fetchAgent(url, { client: client as never, resolve: async () => documentOf(web) })
  expect(found).toMatchObject({ name: 'Calc', cardSignature })
})
