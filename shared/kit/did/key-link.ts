import bs58 from 'bs58'
import { readBase58 } from './base58.ts'
import { verifyEd25519 } from './ed25519.ts'
import type { KeyPair } from './keys.ts'
import { readSignature } from './signature.ts'

/** One of the keys that a DID ever had. */
export interface KnownKey {
  publicKeyBase58: string
  /** Base58, by the key before it over this one; the first key has none: the DID is made of it. */
  signature?: string
  /** No longer good for anything new. */
  retired?: true
}

/** Every key that a DID ever had, oldest first; the last one signs. */
export type KeyHistory = [KnownKey, ...KnownKey[]]

/** 0xFF stands in no UTF-8 text: nothing else that a key signs can be taken for this. */
const domain = Buffer.from('\u00ffparley next key v1\n', 'latin1')

/** The signature of a key over the one that comes after it. */
export function signNextKey(key: KeyPair, next: string): string {
  return bs58.encode(key.sign(linkBytes(key.publicKeyBase58, next)))
}

/** Whether each key but the first is signed by the one before it; never throws. */
export function isLinked(history: readonly KnownKey[]): boolean {
  return history.every(({ publicKeyBase58, signature }, i) => {
    const before = history[i - 1]
    if (before === undefined) return true
    const [key, signed] = [readBase58(before.publicKeyBase58, 32), readSignature(signature ?? '')]
    if (key === undefined || signed === undefined) return false
    return verifyEd25519(key, linkBytes(before.publicKeyBase58, publicKeyBase58), signed)
  })
}

function linkBytes(key: string, next: string): Buffer {
  return Buffer.concat([domain, Buffer.from(JSON.stringify([key, next]))])
}
