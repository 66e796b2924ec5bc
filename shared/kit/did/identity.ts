import { readBase58 } from './base58.ts'
import { makeDid } from './did.ts'
import { type DidDocument, didDocument, verifyDocument } from './document.ts'
import { type KeyRing, loadOrCreateKeys } from './key-file.ts'
import type { KeyHistory } from './key-link.ts'
import { type KeyPair, keyPairFromSeed } from './keys.ts'

/** Who a server is: what it signs with and what it shows of itself. */
export interface Identity {
  did: string
  key: KeyPair
  document: DidDocument
}

/** An agent's, from its key file, which is made where it is not there. */
export async function agentIdentity(author: string, keyFile: string): Promise<Identity> {
  return identityOf(author, 'agent', await loadOrCreateKeys(keyFile))
}

/** What the gateway's identity is made of: the SERVICE_GATEWAY_* settings. */
export interface GatewayIdentitySettings {
  /** 32 bytes. */
  seed: Uint8Array
  author: string
  name: string
  /** Every key there was, once the first was followed by another. Absent: the seed's is the only one. */
  history?: KeyHistory | undefined
}

/**
 * The gateway's: the same settings give the same DID on every replica. The seed's key signs; it need not be the newest,
 * so that every replica can list a new key before one signs with it.
 * @throws Error when the keys are not linked, or that of the seed is not among them or is retired
 */
export function gatewayIdentity({ seed, author, name, history }: GatewayIdentitySettings): Identity {
  const key = keyPairFromSeed(seed)
  const ring: KeyRing = { key, history: history ?? [{ publicKeyBase58: key.publicKeyBase58 }] }
  const identity = identityOf(author, name, ring)
  if (!verifyDocument(identity.document, identity.did).includes(key.publicKeyBase58))
    throw new Error('The key of the seed is not one of the keys that count.')
  return identity
}

/** The name in its document of the key that signs: the DID and `#key-1`, `#key-2` … */
export function signingKeyId({ document, key }: Identity): string {
  const method = document.authentication.find((one) => one.publicKeyBase58 === key.publicKeyBase58)
  if (method === undefined) throw new Error('The key that signs is not in the document.')
  return method.id
}

/** @throws Error when author or name cannot stand in a DID */
function identityOf(author: string, name: string, { key, history }: KeyRing): Identity {
  // The first key makes the DID, also after it was retired.
  const first = readBase58(history[0].publicKeyBase58, 32)
  if (first === undefined) throw new Error('The first key of the key file is not a key.')
  const did = makeDid({ author, name, publicKey: first })
  return { did, key, document: didDocument(did, history) }
}
