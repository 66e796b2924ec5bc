import { ECDH, type KeyObject } from 'node:crypto'
import { readPublicKey } from '@parley/kit/auth/client-keys'
import { readBase58 } from '@parley/kit/did/base58'
import { p256Key } from '@parley/kit/did/card-key'
import { type CardAlgorithm, ed25519Key } from '@parley/kit/did/card-signature'
import { keyId } from '@parley/kit/did/did'
import { DocumentFault, verifyDocument } from '@parley/kit/did/document'
import type { JsonObject } from '@parley/wire/model/task'
import bs58 from 'bs58'
import { z } from 'zod'

const method = z.looseObject({
  id: z.string(),
  type: z.string(),
  publicKeyBase58: z.string().optional(),
  publicKeyMultibase: z.string().optional(),
  controller: z.string().optional(),
  publicKeyJwk: z
    .looseObject({ kty: z.string(), crv: z.string(), x: z.string().length(43), y: z.string().optional() })
    .optional(),
})
type Method = z.infer<typeof method>
/** The multicodec prefix `ed25519-pub`, which precedes the 32-byte key. */
const multicodec = [0xed, 0x01]

const document = z.looseObject({
  id: z.string(),
  verificationMethod: z.array(z.unknown()).max(100).default([]),
  authentication: z.array(z.unknown()).max(100).default([]),
  assertionMethod: z.array(z.unknown()).max(100).default([]),
})

/**
 * Returns the keys (base58, oldest first) that authenticate the DID, or undefined if the document belongs to another DID
 * or lists no Ed25519 key.
 */
export function documentKeys(given: JsonObject, did: string): string[] | undefined {
  if (!did.startsWith('did:parley:')) return keysOfOtherMethods(given, did)
  try {
    return verifyDocument(given, did)
  } catch (error) {
    if (error instanceof DocumentFault) return undefined
    throw error
  }
}

/**
 * Returns the keys that can prove the DID. The agent itself serves its did:bindu document, so only the key from which the
 * id derives counts. Most agents of the reference implementation derive the id from their author and name and have no
 * such key.
 */
export function provableKeys(did: string, keys: string[]): string[] {
  if (!did.startsWith('did:bindu:')) return keys
  return keys.filter((key) => keyId(bs58.decode(key)) === did.split(':').at(-1))
}

/** Returns the keys of a did:key or did:web. Only the location of the document binds them to the DID. */
function keysOfOtherMethods(given: JsonObject, did: string): string[] | undefined {
  const parsed = document.safeParse(given).data
  if (parsed?.id !== did) return undefined
  const named = new Set(
    parsed.authentication.flatMap((one) => (typeof one === 'string' ? absolute(one, did) : [])),
  )
  const keys = [...parsed.verificationMethod, ...parsed.authentication].flatMap((one) => {
    const given = method.safeParse(one).data
    const key = given && keyOf(given)
    if (key === undefined || readPublicKey(key) === undefined) return []
    const counts = parsed.authentication.includes(one) || named.has(absolute(given?.id ?? '', did))
    return counts ? [key] : []
  })
  return keys.length === 0 ? undefined : [...new Set(keys)]
}

/**
 * Returns the key with which the DID signs statements such as cards: a verification method that the document lists for
 * authentication or assertion.
 */
export function signingKeyIn(
  given: JsonObject,
  { did, kid, alg }: { did: string; kid: string; alg: CardAlgorithm },
): KeyObject | undefined {
  const parsed = document.safeParse(given).data
  if (parsed?.id !== did) return undefined
  const uses = [...parsed.authentication, ...parsed.assertionMethod]
  const isListed = uses.some((one) => typeof one === 'string' && absolute(one, did) === kid)
  const methods = isListed ? [...parsed.verificationMethod, ...uses] : uses
  for (const one of methods) {
    const found = method.safeParse(one).data
    if (found === undefined || absolute(found.id, did) !== kid) continue
    if (found.controller !== undefined && found.controller !== did) return undefined
    if (alg === 'ES256') return es256Key(found)
    const key = keyOf(found)
    return key === undefined ? undefined : ed25519Key(key)
  }
  return undefined
}

function es256Key({ publicKeyJwk, publicKeyMultibase }: Method): KeyObject | undefined {
  if (publicKeyMultibase !== undefined) return p256KeyOf(publicKeyMultibase)
  if (publicKeyJwk?.kty !== 'EC' || publicKeyJwk.crv !== 'P-256') return undefined
  const { x, y = '' } = publicKeyJwk
  return p256Key({ x, y })
}

/** The multicodec prefix `p256-pub`, which precedes the compressed point of 33 bytes. */
const p256Multicodec = [0x80, 0x24]

function p256KeyOf(multibase: string): KeyObject | undefined {
  const bytes = multibase.startsWith('z') ? readBase58(multibase.slice(1), 35) : undefined
  if (bytes === undefined || !p256Multicodec.every((byte, at) => bytes[at] === byte)) return undefined
  try {
    const hex = ECDH.convertKey(bytes.subarray(2), 'prime256v1', undefined, 'hex', 'uncompressed')
    const point = Buffer.from(hex.toString(), 'hex')
    return p256Key({
      x: point.subarray(1, 33).toString('base64url'),
      y: point.subarray(33).toString('base64url'),
    })
  } catch {
    return undefined
  }
}

/** Expands a fragment such as `#1` into a full id. */
function absolute(id: string, did: string): string {
  return id.startsWith('#') ? did + id : id
}

/** Returns the Ed25519 key of a verification method in base58, whichever encoding the method uses. */
function keyOf({ type, publicKeyBase58, publicKeyMultibase, publicKeyJwk }: Method): string | undefined {
  if (publicKeyBase58 !== undefined) return type.startsWith('Ed25519') ? publicKeyBase58 : undefined
  if (publicKeyMultibase !== undefined) {
    const bytes = publicKeyMultibase.startsWith('z') ? readBase58(publicKeyMultibase.slice(1), 34) : undefined
    const isEd25519 = bytes !== undefined && multicodec.every((byte, at) => bytes[at] === byte)
    return isEd25519 ? bs58.encode(bytes.subarray(2)) : undefined
  }
  if (publicKeyJwk?.kty !== 'OKP' || publicKeyJwk.crv !== 'Ed25519') return undefined
  return bs58.encode(Buffer.from(publicKeyJwk.x, 'base64url'))
}
