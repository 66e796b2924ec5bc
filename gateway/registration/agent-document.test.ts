import { keyPairFromSeed } from '@parley/kit/did/keys'
import type { JsonObject } from '@parley/wire/model/task'
import bs58 from 'bs58'
import { expect, test } from 'vitest'
import { documentKeys } from './agent-document.ts'

const did = 'did:web:alice.example'
const { publicKey, publicKeyBase58: key } = keyPairFromSeed(Buffer.alloc(32, 1))
const multibase = (...head: number[]) => `z${bs58.encode(Buffer.from([...head, ...publicKey]))}`
const x = Buffer.from(publicKey).toString('base64url')
const okp = { kty: 'OKP', crv: 'Ed25519', x }

test.each<[string, JsonObject, string[] | undefined]>([
  ['base58', { type: 'Ed25519VerificationKey2018', publicKeyBase58: key }, [key]],
  ['base58 of another type', { type: 'X25519KeyAgreementKey2019', publicKeyBase58: key }, undefined],
  ['multibase', { type: 'Ed25519VerificationKey2020', publicKeyMultibase: multibase(0xed, 1) }, [key]],
  ['Multikey', { type: 'Multikey', publicKeyMultibase: multibase(0xed, 1) }, [key]],
  ['multibase of another codec', { type: 'Multikey', publicKeyMultibase: multibase(0xec, 1) }, undefined],
  ['multibase too short', { type: 'Multikey', publicKeyMultibase: multibase(0xed) }, undefined],
  [
    'multibase in another base',
    { type: 'Multikey', publicKeyMultibase: multibase(0xed, 1).replace('z', 'Q') },
    undefined,
  ],
  ['a JWK', { type: 'JsonWebKey2020', publicKeyJwk: okp }, [key]],
  ['a JWK of another curve', { type: 'JsonWebKey2020', publicKeyJwk: { ...okp, crv: 'X25519' } }, undefined],
  ['a JWK that is too short', { type: 'JsonWebKey2020', publicKeyJwk: { ...okp, x: 'AA' } }, undefined],
  ['an invalid JWK', { type: 'JsonWebKey2020', publicKeyJwk: 5 }, undefined],
  ['no key', { type: 'Ed25519VerificationKey2020' }, undefined],
])('the key in a document of another DID method is read as expected: %s', (_what, method, keys) => {
  const listed = (id: string, name: string) =>
    documentKeys({ id: did, verificationMethod: [{ id, ...method }], authentication: [name] }, did)
  expect(listed(`${did}#1`, `${did}#1`)).toEqual(keys)
  expect(listed('#1', `${did}#1`)).toEqual(keys)
  expect(listed(`${did}#1`, '#1')).toEqual(keys)
  expect(documentKeys({ id: did, authentication: [{ id: '#1', ...method }] }, did)).toEqual(keys)
  expect(listed('#2', '#1')).toBeUndefined()
})
