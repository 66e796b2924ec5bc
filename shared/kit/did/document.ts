import { z } from 'zod'
import { readBase58 } from './base58.ts'
import { keyId } from './did.ts'
import { isAcceptableKey } from './ed25519.ts'
import { isLinked, type KeyHistory } from './key-link.ts'

/** W3C DID Core, the part that we use. No `created` (spec/did.md#did-document). */
export interface DidDocument {
  '@context': string[]
  id: string
  /** The keys that count, oldest first: the last one signs. */
  authentication: VerificationMethod[]
  /**
   * Ours, and there once the first key was followed by another: every key that there ever was, oldest first. The DID is
   * made of the first; each later one carries a signature by the one before it.
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

export function didDocument(did: string, history: KeyHistory): DidDocument {
  const named = history.map((key, i) => ({ id: `${did}#key-${i + 1}`, ...key }))
  const document: DidDocument = {
    '@context': contexts,
    id: did,
    authentication: named
      .filter(({ retired }) => retired !== true)
      .map(({ id, publicKeyBase58 }) => ({
        id,
        type: 'Ed25519VerificationKey2020',
        controller: did,
        publicKeyBase58,
      })),
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

/** Why a document is not that of a DID; `message` is a sentence. */
export class DocumentFault extends Error {
  override readonly name = 'DocumentFault'
}

/**
 * The keys that count for this DID (`did:parley`, of an agent or a gateway), base58, oldest first: the last one signs.
 * The binding is followed from the DID to its first key, and from each key to the next.
 * @throws DocumentFault
 */
export function verifyDocument(given: unknown, did: string): [string, ...string[]] {
  const parsed = documentIn.safeParse(given)
  if (!parsed.success) {
    const where = parsed.error.issues[0]?.path.join('.')
    throw new DocumentFault(`It is not a DID document of ours${where ? ` (${where})` : ''}.`)
  }
  const { id, authentication, keyHistory } = parsed.data
  if (id !== did) throw new DocumentFault('The document is that of another DID.')
  const history = keyHistory ?? authentication
  const [first] = history
  if (keyId(readBase58(first?.publicKeyBase58 ?? '', 32) ?? new Uint8Array()) !== did.split(':').at(-1))
    throw new DocumentFault('The DID is not made of the first key.')
  if (!history.every((one, i) => one.id === `${did}#key-${i + 1}`))
    throw new DocumentFault('The keys are not numbered in order.')
  if (keyHistory === undefined ? authentication.length > 1 : !isLinked(keyHistory))
    throw new DocumentFault('A later key is not signed by the one before it.')
  const counts = didDocument(did, history.map(({ id: _id, ...one }) => one) as KeyHistory).authentication
  const same = (one: VerificationMethod, i: number) =>
    one.id === counts[i]?.id && one.publicKeyBase58 === counts[i].publicKeyBase58 && one.controller === did
  if (authentication.length !== counts.length || !authentication.every(same))
    throw new DocumentFault('The keys listed are not those that are not retired.')
  return authentication.map(({ publicKeyBase58 }) => publicKeyBase58) as [string, ...string[]]
}
