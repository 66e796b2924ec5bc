import { describe, expect, test } from 'vitest'
import { makeDid } from './did.ts'
import { type DidDocument, didDocument, verifyDocument } from './document.ts'
import { gatewayIdentity } from './identity.ts'
import { type KeyHistory, signNextKey } from './key-link.ts'
import { type KeyPair, keyPairFromSeed } from './keys.ts'

const pairs = [1, 2, 3, 4].map((value) => keyPairFromSeed(Buffer.alloc(32, value)))
const [one, two, three, stranger] = pairs as [KeyPair, KeyPair, KeyPair, KeyPair]
const did = makeDid({ author: 'alice', name: 'agent', publicKey: one.publicKey })

const only: KeyHistory = [{ publicKeyBase58: one.publicKeyBase58 }]
const linked = (key: KeyPair, next: KeyPair) => ({
  publicKeyBase58: next.publicKeyBase58,
  signature: signNextKey(key, next.publicKeyBase58),
})
const rotated: KeyHistory = [...only, linked(one, two), linked(two, three)]
const retired: KeyHistory = [
  { ...only[0], retired: true },
  { ...linked(one, two), retired: true },
  linked(two, three),
]

test('the document for one key follows spec/did.md#did-document without `created`', () => {
  expect(didDocument(did, only)).toEqual({
    '@context': expect.arrayContaining(['https://www.w3.org/ns/did/v1']),
    id: did,
    authentication: [
      {
        id: `${did}#key-1`,
        type: 'Ed25519VerificationKey2020',
        controller: did,
        publicKeyBase58: one.publicKeyBase58,
      },
    ],
  })
})

test('the same settings give a gateway the same DID and document', () => {
  const settings = { seed: Buffer.alloc(32, 1), author: 'Ada@example.com', name: 'Front Door' }
  const identity = gatewayIdentity(settings)
  expect(identity.did).toMatch(/^did:parley:ada_at_example_com:front_door:[\da-f-]{36}$/)
  expect(gatewayIdentity(settings).document).toEqual(identity.document)
  expect(verifyDocument(identity.document, identity.did)).toEqual([one.publicKeyBase58])
})

test('old keys are listed until they are retired, and the key history verifies before and after', () => {
  expect(verifyDocument(didDocument(did, rotated), did)).toEqual(
    [one, two, three].map((key) => key.publicKeyBase58),
  )
  const document = didDocument(did, retired)
  expect(document.authentication.map(({ id }) => id)).toEqual([`${did}#key-3`])
  expect(verifyDocument(JSON.parse(JSON.stringify(document)), did)).toEqual([three.publicKeyBase58])
})

describe('a document that does not belong to the DID is rejected', () => {
  const changed = (history: KeyHistory, change: (document: DidDocument) => void) => {
    const document = structuredClone(didDocument(did, history))
    change(document)
    return document
  }
  const cases: [string, unknown, RegExp][] = [
    ['nothing', undefined, /not a DID document/],
    ['a text', 'did', /not a DID document/],
    ['no keys', changed(only, (it) => (it.authentication = [])), /authentication/],
    ['another DID', changed(only, (it) => (it.id = `${did}x`)), /another DID/],
    [
      'another’s key',
      didDocument(did, [{ publicKeyBase58: stranger.publicKeyBase58 }]),
      /not derived from the first key/,
    ],
    ['a malformed key', didDocument(did, [{ publicKeyBase58: '0OIl' }]), /not a DID document/],
    ['a key of small order', didDocument(did, [{ publicKeyBase58: '1'.repeat(32) }]), /not a DID document/],
    [
      'another controller',
      changed(only, (it) => Object.assign(it.authentication[0] ?? {}, { controller: 'did:x:y' })),
      /not retired/,
    ],
    ['a second key without a history', changed(rotated, (it) => delete it.keyHistory), /not signed/],
    ['a link signed with a foreign key', didDocument(did, [...only, linked(stranger, two)]), /not signed/],
    [
      'a link without a signature',
      didDocument(did, [...only, { publicKeyBase58: two.publicKeyBase58 }]),
      /not signed/,
    ],
    [
      'a link to another key',
      didDocument(did, [...only, { ...linked(one, two), publicKeyBase58: stranger.publicKeyBase58 }]),
      /not signed/,
    ],
    ['a missing key in the history', didDocument(did, [...only, linked(two, three)]), /not signed/],
    [
      'a retired key that is listed',
      changed(retired, (it) => (it.authentication = didDocument(did, rotated).authentication)),
      /not retired/,
    ],
    [
      'a listed key that is not in the history',
      changed(rotated, (it) =>
        it.authentication.push({
          ...(it.authentication[0] as DidDocument['authentication'][0]),
          publicKeyBase58: stranger.publicKeyBase58,
        }),
      ),
      /not retired/,
    ],
    ['the history in another order', changed(rotated, (it) => it.keyHistory?.reverse()), /first key/],
    [
      '101 keys',
      changed(only, (it) => (it.authentication = Array(101).fill(it.authentication[0]))),
      /authentication/,
    ],
  ]
  test.each(cases)('%s', (_what, document, reason) => {
    expect(() => verifyDocument(document, did)).toThrow(reason)
  })
})
