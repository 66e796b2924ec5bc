import { generateKeyPairSync, verify } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { type CardKeyMethod, cardKeyPair, p256Key } from './card-key.ts'
import { cardKeysOf, cardSigner, verifyCard } from './card-signature.ts'
import type { DidDocument } from './document.ts'
import { agentIdentity, gatewayIdentity, type Identity, withCardKeys } from './identity.ts'
import { retireOldKeys, rotateKeys } from './key-file.ts'
import { type KeyHistory, signNextKey } from './key-link.ts'
import { keyPairFromSeed } from './keys.ts'

const [seed, nextSeed] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
const [one, two] = [keyPairFromSeed(seed), keyPairFromSeed(nextSeed)]
const settings = { seed, author: 'ops', name: 'front', cardEs256: true }
const identity = gatewayIdentity(settings)
const card = { name: 'Ada', supportedInterfaces: [{ url: 'http://a' }] }

/** Verifies only with ES256, like clients that do not know EdDSA. */
function verdictOf(signed: object, { document, did }: Pick<Identity, 'document' | 'did'>) {
  const keyOf = cardKeysOf(JSON.parse(JSON.stringify(document)), did)
  return verifyCard({ ...signed }, (kid, alg) => (alg === 'ES256' ? keyOf(kid, alg) : undefined))
}

test('the P-256 key is derived from the Ed25519 key, so replicas with one seed have the same', () => {
  const pair = cardKeyPair(one)
  expect(cardKeyPair(keyPairFromSeed(seed)).key).toEqual(pair.key)
  expect(cardKeyPair(two).key.x).not.toBe(pair.key.x)
  const [publicKey, bytes] = [p256Key(pair.key), Buffer.from('a card')]
  expect(publicKey).toBeDefined()
  const options = publicKey && { key: publicKey, dsaEncoding: 'ieee-p1363' as const }
  expect(options && verify('sha256', bytes, options, pair.sign(bytes))).toBe(true)
})

test('the document lists the P-256 key for assertions, not for authentication', () => {
  const { did, document } = identity
  const { x, y, signature } = cardKeyPair(one).key
  const listed = { kty: 'EC', crv: 'P-256', x, y }
  expect(document.assertionMethod).toEqual([
    `${did}#key-1`,
    { id: `${did}#key-1-es256`, type: 'JsonWebKey2020', controller: did, publicKeyJwk: listed, signature },
  ])
  expect(document['@context']).toContain('https://w3id.org/security/suites/jws-2020/v1')
  expect(document.authentication).toHaveLength(1)
  expect(gatewayIdentity({ ...settings, cardEs256: false }).document).not.toHaveProperty('assertionMethod')
})

test('cards are signed with both keys, each of which verifies by the document', async () => {
  const signed = cardSigner(identity)(card)
  const kid = `${identity.did}#key-1`
  const es256 = { verified: true, kid: `${kid}-es256`, alg: 'ES256', covers: 'card' }
  expect(await verdictOf(signed, identity)).toEqual(es256)
  const all = cardKeysOf(identity.document, identity.did)
  expect(await verifyCard({ ...signed }, all)).toMatchObject({ verified: true, kid, alg: 'EdDSA' })
  expect(await verifyCard({ ...signed, name: 'Eve' }, all)).toMatchObject({ reason: 'mismatch' })
  expect([all(kid, 'ES256'), all(`${kid}-es256`, 'EdDSA')]).toEqual([undefined, undefined])
})

test('the signatures of a card remain the same while it does, so its ETag does', () => {
  const sign = cardSigner(identity)
  expect(sign({ ...card })).toEqual(sign({ ...card }))
})

test.each<[string, (method: CardKeyMethod, document: DidDocument) => void]>([
  [
    'of another owner',
    ({ publicKeyJwk }) => {
      const { x = '', y = '' } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({
        format: 'jwk',
      })
      Object.assign(publicKeyJwk, { x, y })
    },
  ],
  ['that the key of another DID signed', (method) => Object.assign(method, cardKeyPair(two).key)],
  ['without a signature', (method) => Object.assign(method, { signature: undefined })],
  ['of another controller', (method) => Object.assign(method, { controller: 'did:parley:eve' })],
  ['under another id', (method) => Object.assign(method, { id: `${method.controller}#key-2-es256` })],
  ['that is not on the curve', ({ publicKeyJwk }) => Object.assign(publicKeyJwk, { y: publicKeyJwk.x })],
  ['of another type', (method) => Object.assign(method, { type: 'Multikey' })],
  [
    'listed for authentication alone',
    (method, document) => {
      delete document.assertionMethod
      Object.assign(document, { verificationMethod: [method] })
    },
  ],
])('a P-256 key %s does not sign cards for the DID', async (_what, change) => {
  const document = structuredClone(identity.document)
  const [, method] = document.assertionMethod ?? []
  if (typeof method !== 'object') throw new Error('The document lists no P-256 key.')
  change(method, document)
  const verdict = await verdictOf(cardSigner(identity)(card), { ...identity, document })
  expect(verdict).toMatchObject({ verified: false, reason: 'unknown_key' })
})

test('an agent’s earlier P-256 key verifies cards until its key is retired', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-card-keys-'))
  try {
    const file = path.join(folder, 'agent.key.json')
    const first = await agentIdentity('ada', file, { cardEs256: true })
    const signed = cardSigner(first)(card)
    await rotateKeys(file)
    const rotated = await agentIdentity('ada', file, { cardEs256: true })
    expect(await verdictOf(signed, rotated)).toMatchObject({ verified: true })
    const again = cardSigner(rotated)(card)
    expect(await verdictOf(again, rotated)).toMatchObject({ kid: `${first.did}#key-2-es256` })
    await retireOldKeys(file)
    const retired = await agentIdentity('ada', file, { cardEs256: true })
    expect(await verdictOf(signed, retired)).toMatchObject({ reason: 'unknown_key' })
    expect(await verdictOf(again, retired)).toMatchObject({ verified: true })
    // A document that still lists the retired key does not make it valid.
    const { document } = retired
    const { assertionMethod: stale = [] } = rotated.document
    const assertionMethod = [...stale, ...(document.assertionMethod ?? [])]
    const mixed = { ...retired, document: { ...document, assertionMethod } }
    expect(await verdictOf(signed, mixed)).toMatchObject({ reason: 'unknown_key' })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('replicas of a gateway with either seed list the P-256 keys of both, from the list of keys', async () => {
  const signature = signNextKey(one, two.publicKeyBase58)
  const keys: KeyHistory = [
    { publicKeyBase58: one.publicKeyBase58 },
    { publicKeyBase58: two.publicKeyBase58, signature },
  ]
  const history = withCardKeys(keys, [one, two])
  const [before, after] = [seed, nextSeed].map((own) => gatewayIdentity({ ...settings, seed: own, history }))
  expect(before?.document).toEqual(after?.document)
  for (const signer of [before, after])
    expect(signer && (await verdictOf(cardSigner(signer)(card), signer))).toMatchObject({ verified: true })
  const forged = history.map((entry) => ({ ...entry, cardKey: cardKeyPair(one).key }))
  const [oldest = keys[0], ...later] = forged
  expect(() => gatewayIdentity({ ...settings, history: [oldest, ...later] })).toThrow('key for cards')
})
