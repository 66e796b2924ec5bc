import { readBase58 } from './base58.ts'
import { type CardKeyPair, cardKeyPair, isCardKeyOf } from './card-key.ts'
import { makeDid } from './did.ts'
import { type DidDocument, didDocument, verifyDocument } from './document.ts'
import { type KeyRing, loadOrCreateKeys } from './key-file.ts'
import type { KeyEntry, KeyHistory } from './key-link.ts'
import { type KeyPair, keyPairFromSeed } from './keys.ts'

/** The identity of a server: its DID, signing key and DID document. */
export interface Identity {
  did: string
  key: KeyPair
  /** The P-256 key that signs cards in addition to `key`. */
  cardKey?: CardKeyPair
  document: DidDocument
}

/** @param cardEs256 whether cards are signed with ES256 too (CARD_ES256) */
export interface IdentityOptions {
  cardEs256?: boolean
}

/** Returns the identity of an agent from its key file, which is created if missing. */
export async function agentIdentity(
  author: string,
  keyFile: string,
  options: IdentityOptions = {},
): Promise<Identity> {
  return identityOf({ author, name: 'agent', ...options }, await loadOrCreateKeys(keyFile))
}

/** The SERVICE_GATEWAY_* settings and CARD_ES256. */
export interface GatewayIdentitySettings extends IdentityOptions {
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
 * @throws Error if the keys are not linked, a key for cards is not signed, or the seed's key is missing or retired
 */
export function gatewayIdentity({ seed, history, ...settings }: GatewayIdentitySettings): Identity {
  const key = keyPairFromSeed(seed)
  const given: KeyHistory = history ?? [{ publicKeyBase58: key.publicKeyBase58 }]
  const isSigned = ({ publicKeyBase58, cardKey }: KeyEntry) =>
    cardKey === undefined || isCardKeyOf(publicKeyBase58, cardKey)
  if (!given.every(isSigned)) throw new Error('A key for cards is not signed by its key.')
  const identity = identityOf(settings, { key, pairs: [key], history: given })
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
function identityOf(
  { author, name, cardEs256 = false }: IdentityOptions & { author: string; name: string },
  { key, pairs, history }: KeyRing,
): Identity {
  // The DID is derived from the first key, even after it is retired.
  const first = readBase58(history[0].publicKeyBase58, 32)
  if (first === undefined) throw new Error('The first key of the key file is malformed.')
  const did = makeDid({ author, name, publicKey: first })
  if (!cardEs256) return { did, key, document: didDocument(did, history) }
  return { did, key, cardKey: cardKeyPair(key), document: didDocument(did, withCardKeys(history, pairs)) }
}

/** Adds the keys for cards that are derived from these pairs. */
export function withCardKeys([first, ...later]: KeyHistory, pairs: readonly KeyPair[]): KeyHistory {
  const extended = (entry: KeyEntry): KeyEntry => {
    const pair = pairs.find(({ publicKeyBase58 }) => publicKeyBase58 === entry.publicKeyBase58)
    return pair === undefined ? entry : { ...entry, cardKey: cardKeyPair(pair).key }
  }
  return [extended(first), ...later.map(extended)]
}
