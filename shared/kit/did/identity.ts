import { readBase58 } from './base58.ts'
import { makeDid } from './did.ts'
import { type DidDocument, didDocument, verifyDocument } from './document.ts'
import { type KeyRing, loadOrCreateKeys } from './key-file.ts'
import type { KeyHistory } from './key-link.ts'
import { type KeyPair, keyPairFromSeed } from './keys.ts'

/** The identity of a server: its DID, signing key and DID document. */
export interface Identity {
  did: string
  key: KeyPair
  document: DidDocument
}

/** Returns the identity of an agent from its key file, which is created if missing. */
export async function agentIdentity(author: string, keyFile: string): Promise<Identity> {
  return identityOf(author, 'agent', await loadOrCreateKeys(keyFile))
}

/** The SERVICE_GATEWAY_* settings. */
export interface GatewayIdentitySettings {
  /** The 32-byte seed of the signing key. */
  seed: Uint8Array
  author: string
  name: string
  /** All keys after a rotation, oldest first. If absent, the seed's key is the only one. */
  history?: KeyHistory | undefined
}

/**
 * Returns the gateway's identity; every replica with the same settings has the same DID. The seed's key signs. It
 * need not be the newest key, so all replicas can publish a new key before any of them signs with it.
 * @throws Error if the keys are not linked, or the seed's key is missing or retired
 */
export function gatewayIdentity({ seed, author, name, history }: GatewayIdentitySettings): Identity {
  const key = keyPairFromSeed(seed)
  const ring: KeyRing = { key, history: history ?? [{ publicKeyBase58: key.publicKeyBase58 }] }
  const identity = identityOf(author, name, ring)
  if (!verifyDocument(identity.document, identity.did).includes(key.publicKeyBase58))
    throw new Error('The key of the seed is not one of the valid keys.')
  return identity
}

/** Returns the id of the signing key in the document: the DID and `#key-1`, `#key-2` … */
export function signingKeyId({ document, key }: Identity): string {
  const method = document.authentication.find((one) => one.publicKeyBase58 === key.publicKeyBase58)
  if (method === undefined) throw new Error('The signing key is not in the document.')
  return method.id
}

/** @throws Error if the author or name is not valid in a DID */
function identityOf(author: string, name: string, { key, history }: KeyRing): Identity {
  // The DID is derived from the first key, even after it is retired.
  const first = readBase58(history[0].publicKeyBase58, 32)
  if (first === undefined) throw new Error('The first key of the key file is malformed.')
  const did = makeDid({ author, name, publicKey: first })
  return { did, key, document: didDocument(did, history) }
}
