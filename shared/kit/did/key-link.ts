import bs58 from 'bs58'
import { readBase58 } from './base58.ts'
import type { CardKey } from './card-key.ts'
import { verifyEd25519 } from './ed25519.ts'
import type { KeyPair } from './keys.ts'
import { readSignature } from './signature.ts'

/** A current or former key of a DID. */
export interface KeyEntry {
  publicKeyBase58: string
  /** Signature of this key by the previous key, base58. Absent for the first key, from which the DID is derived. */
  signature?: string
  /** Set if the key is no longer valid. */
  retired?: true
  /** The P-256 key derived from this key, if it signs cards too. */
  cardKey?: CardKey
}

/** All current and former keys of a DID, oldest first; the last one signs. */
export type KeyHistory = [KeyEntry, ...KeyEntry[]]

/** Provides domain separation: 0xFF never occurs in UTF-8, so no other signature of the key is valid here. */
const domain = Buffer.from('\u00ffparley next key v1\n', 'latin1')

/** Signs the successor of a key. */
export function signNextKey(key: KeyPair, next: string): string {
  return bs58.encode(key.sign(linkBytes(key.publicKeyBase58, next)))
}

/** Whether each key except the first is signed by its predecessor; never throws. */
export function isLinked(history: readonly KeyEntry[]): boolean {
  return history.every(({ publicKeyBase58, signature }, i) => {
    const previous = history[i - 1]
    if (previous === undefined) return true
    const [key, signed] = [readBase58(previous.publicKeyBase58, 32), readSignature(signature ?? '')]
    if (key === undefined || signed === undefined) return false
    return verifyEd25519(key, linkBytes(previous.publicKeyBase58, publicKeyBase58), signed)
  })
}

function linkBytes(key: string, next: string): Buffer {
  return Buffer.concat([domain, Buffer.from(JSON.stringify([key, next]))])
}
