import { z } from 'zod'
import { readBase58 } from './base58.ts'
import { type CardKeyMethod, cardKeyMethod } from './card-key.ts'
import { keyId } from './did.ts'
import { isAcceptableKey } from './ed25519.ts'
import { isLinked, type KeyHistory } from './key-link.ts'

/** A DID document (W3C DID Core), without `created` (spec/did.md#did-document). */
export interface DidDocument {
  '@context': string[]
  id: string
  /** The valid keys, oldest first; the last one signs. */
  authentication: VerificationMethod[]
  /** The keys that sign cards, if some of them are not in `authentication`: references to those and the other keys. */
  assertionMethod?: (string | CardKeyMethod)[]
  /**
   * Parley extension that lists all keys, oldest first, after the first rotation. The DID is derived from the first
   * key; each later key is signed by its predecessor.
   */
  keyHistory?: { id: string; publicKeyBase58: string; signature?: string; retired?: true }[]
}

export interface VerificationMethod {
  /** The DID and `#key-1`, `#key-2` … */
  id: string
  type: 'Ed25519VerificationKey2020'
  controller: string
  publicKeyBase58: string
}

export const didDocumentType = 'application/did+json'
const contexts = ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/suites/ed25519-2020/v1']

/** Terms of the P-256 keys. */
const cardKeyContext = 'https://w3id.org/security/suites/jws-2020/v1'

export function didDocument(did: string, history: KeyHistory): DidDocument {
  const named = history.map(({ cardKey: _cardKey, ...key }, i) => ({ id: `${did}#key-${i + 1}`, ...key }))
  const authentication = named
    .filter(({ retired }) => retired !== true)
    .map(({ id, publicKeyBase58 }): VerificationMethod => {
      return { id, type: 'Ed25519VerificationKey2020', controller: did, publicKeyBase58 }
    })
  const cardKeys = history.flatMap(({ cardKey, retired }, i) =>
    cardKey === undefined || retired ? [] : [cardKeyMethod(did, `${did}#key-${i + 1}`, cardKey)],
  )
  const signsCards = cardKeys.length > 0
  const document: DidDocument = {
    '@context': signsCards ? [...contexts, cardKeyContext] : contexts,
    id: did,
    authentication,
    ...(signsCards && { assertionMethod: [...authentication.map(({ id }) => id), ...cardKeys] }),
  }
  if (named.length > 1) document.keyHistory = named
  return document
}

const text = z.string().max(512)
const key = text.refine((base58) => {
  const bytes = readBase58(base58, 32)
  return bytes !== undefined && isAcceptableKey(bytes)
})
const keysMax = 100
const documentIn = z.object({
  '@context': z.array(z.unknown()).max(keysMax),
  id: text,
  authentication: z
    .array(
      z.object({
        id: text,
        type: z.literal('Ed25519VerificationKey2020'),
        controller: text,
        publicKeyBase58: key,
      }),
    )
    .min(1)
    .max(keysMax),
  keyHistory: z
    .array(
      z.object({
        id: text,
        publicKeyBase58: key,
        signature: text.exactOptional(),
        retired: z.literal(true).exactOptional(),
      }),
    )
    .min(2)
    .max(keysMax)
    .exactOptional(),
})

/** A DID document in an answer. */
export const didDocumentAnswer = documentIn
  .extend({ assertionMethod: z.array(z.union([z.string(), z.looseObject({ id: z.string() })])).optional() })
  .meta({ id: 'DidDocument' })

/** Thrown if a document does not belong to the DID. The message is a sentence. */
export class DocumentFault extends Error {
  override readonly name = 'DocumentFault'
}

/**
 * Verifies that a document belongs to a DID (`did:parley`) of an agent or a gateway. The DID must be derived from the
 * first key, and each later key must be signed by its predecessor.
 * @returns the valid keys, base58, oldest first; the last one signs
 * @throws DocumentFault
 */
export function verifyDocument(document: unknown, did: string): [string, ...string[]] {
  const [oldest, ...others] = verifiedMethods(document, did).map(({ publicKeyBase58 }) => publicKeyBase58)
  if (oldest === undefined) throw new DocumentFault('The document has no keys.')
  return [oldest, ...others]
}

/** Like `verifyDocument`; returns the valid keys with their ids. @throws DocumentFault */
export function verifiedMethods(document: unknown, did: string): VerificationMethod[] {
  const parsed = documentIn.safeParse(document)
  if (!parsed.success) {
    const where = parsed.error.issues[0]?.path.join('.')
    throw new DocumentFault(`This is not a DID document${where ? ` (${where})` : ''}.`)
  }
  const { id, authentication, keyHistory } = parsed.data
  if (id !== did) throw new DocumentFault('The document belongs to another DID.')
  const history = keyHistory ?? authentication
  const [first] = history
  if (keyId(readBase58(first?.publicKeyBase58 ?? '', 32) ?? new Uint8Array()) !== did.split(':').at(-1))
    throw new DocumentFault('The DID is not derived from the first key.')
  if (!history.every((one, i) => one.id === `${did}#key-${i + 1}`))
    throw new DocumentFault('The keys are not numbered in order.')
  if (keyHistory === undefined ? authentication.length > 1 : !isLinked(keyHistory))
    throw new DocumentFault('A later key is not signed by the one before it.')
  const [firstKey, ...laterKeys] = history.map(({ id: _id, ...one }) => one)
  if (firstKey === undefined) throw new DocumentFault('The document has no keys.')
  const valid = didDocument(did, [firstKey, ...laterKeys]).authentication
  const same = (one: VerificationMethod, i: number) =>
    one.id === valid[i]?.id && one.publicKeyBase58 === valid[i].publicKeyBase58 && one.controller === did
  if (authentication.length !== valid.length || !authentication.every(same))
    throw new DocumentFault('The listed keys differ from the keys that are not retired.')
  return authentication
}
