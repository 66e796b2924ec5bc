import { createECDH, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import bs58 from 'bs58'
import { z } from 'zod'
import { readBase58 } from './base58.ts'
import { verifyEd25519 } from './ed25519.ts'
import type { KeyPair } from './keys.ts'
import { readSignature } from './signature.ts'

/** A P-256 key that signs cards for a DID in addition to an Ed25519 key, from which it is derived. */
export interface CardKey {
  /** The coordinates of the point, base64url. */
  x: string
  y: string
  /** Signature of the point by the Ed25519 key, base58. */
  signature: string
}

export interface CardKeyPair {
  key: CardKey
  /** Returns an ES256 signature (RFC 7518, section 3.4). It differs each time. */
  sign(bytes: Uint8Array): Uint8Array
}

/** A key of a document that signs cards. The DID owns it if the Ed25519 key in `id` has signed it. */
export interface CardKeyMethod {
  /** The id of the Ed25519 key and `-es256`. */
  id: string
  type: 'JsonWebKey2020'
  controller: string
  publicKeyJwk: { kty: 'EC'; crv: 'P-256'; x: string; y: string }
  /** Parley extension: `CardKey.signature`. */
  signature: string
}

const curve = { kty: 'EC', crv: 'P-256' } as const
const coordinateBytes = 32

/** Derives the P-256 key of an Ed25519 key. All replicas with the same seed have the same. */
export function cardKeyPair(key: KeyPair): CardKeyPair {
  const { d, x, y } = derivedPoint(key)
  const privateKey = createPrivateKey({ key: { ...curve, d, x, y }, format: 'jwk' })
  const signature = bs58.encode(key.sign(signedBytes(key.publicKeyBase58, { x, y })))
  return {
    key: { x, y, signature },
    sign: (bytes) => sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' }),
  }
}

/** A derived secret is not a private key of the curve with a probability of 2^-32; then the next one is. */
function derivedPoint(key: KeyPair, attempt = 1): { d: string; x: string; y: string } {
  const secret = key.deriveSecret(`parley card key ES256 v1 ${attempt}`)
  const ecdh = createECDH('prime256v1')
  try {
    ecdh.setPrivateKey(secret)
  } catch (error) {
    if (attempt === 3) throw error
    return derivedPoint(key, attempt + 1)
  }
  const point = ecdh.getPublicKey()
  const encode = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')
  return {
    d: encode(secret),
    x: encode(point.subarray(1, 1 + coordinateBytes)),
    y: encode(point.subarray(1 + coordinateBytes)),
  }
}

/** Whether the Ed25519 key has signed the P-256 key. */
export function isCardKeyOf(publicKeyBase58: string, { x, y, signature }: CardKey): boolean {
  const [key, signed] = [readBase58(publicKeyBase58, 32), readSignature(signature)]
  if (key === undefined || signed === undefined || p256Key({ x, y }) === undefined) return false
  return verifyEd25519(key, signedBytes(publicKeyBase58, { x, y }), signed)
}

export function cardKeyMethod(did: string, keyId: string, { x, y, signature }: CardKey): CardKeyMethod {
  return {
    id: cardKeyId(keyId),
    type: 'JsonWebKey2020',
    controller: did,
    publicKeyJwk: { ...curve, x, y },
    signature,
  }
}

/** Returns the id of the P-256 key that is derived from the Ed25519 key with this id. */
export function cardKeyId(keyId: string): string {
  return `${keyId}-es256`
}

const cardKeyMethodIn = z.object({
  type: z.literal('JsonWebKey2020'),
  controller: z.string(),
  publicKeyJwk: z.object({
    kty: z.literal('EC'),
    crv: z.literal('P-256'),
    x: z.string().length(43),
    y: z.string().length(43),
  }),
  signature: z.string().max(128),
})
const methodsMax = 200

/** Returns the P-256 key of this id in a did:parley document if one of its valid Ed25519 keys has signed it. */
export function cardKeyIn(
  document: unknown,
  kid: string,
  valid: readonly { id: string; controller: string; publicKeyBase58: string }[],
): KeyObject | undefined {
  const parent = valid.find(({ id }) => cardKeyId(id) === kid)
  const listed = isObject(document) ? document['assertionMethod'] : undefined
  if (parent === undefined || !Array.isArray(listed)) return undefined
  const found = listed.slice(0, methodsMax).find((one) => isObject(one) && one['id'] === kid)
  const { data } = cardKeyMethodIn.safeParse(found)
  if (data === undefined || data.controller !== parent.controller) return undefined
  const { publicKeyJwk, signature } = data
  return isCardKeyOf(parent.publicKeyBase58, { ...publicKeyJwk, signature })
    ? p256Key(publicKeyJwk)
    : undefined
}

/** Returns the public key with these coordinates (base64url); undefined if the point is not on the curve. */
export function p256Key({ x, y }: { x: string; y: string }): KeyObject | undefined {
  try {
    return createPublicKey({ key: { ...curve, x, y }, format: 'jwk' })
  } catch {
    return undefined
  }
}

/** Provides domain separation: 0xFF never occurs in UTF-8, so no other signature of the key is valid here. */
const domain = Buffer.from('\u00ffparley card key v1\n', 'latin1')

function signedBytes(publicKeyBase58: string, { x, y }: Pick<CardKey, 'x' | 'y'>): Buffer {
  return Buffer.concat([domain, Buffer.from(JSON.stringify([publicKeyBase58, x, y]))])
}
