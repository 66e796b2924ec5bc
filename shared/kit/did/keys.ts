import { hkdfSync } from 'node:crypto'
import bs58 from 'bs58'
import nacl from 'tweetnacl'
import { signerOf } from './ed25519.ts'

/** An Ed25519 key pair. The seed exists only in its file and in this object. */
export interface KeyPair {
  publicKey: Uint8Array
  publicKeyBase58: string
  sign(bytes: Uint8Array): Uint8Array
  /** Returns a secret of 32 bytes for the given purpose, derived from the seed (HKDF-SHA256, RFC 5869). */
  deriveSecret(purpose: string): Uint8Array
}

export const seedBytes = 32

/** @throws Error unless the seed has 32 bytes */
export function keyPairFromSeed(seed: Uint8Array): KeyPair {
  if (seed.byteLength !== seedBytes) throw new Error(`An Ed25519 seed has ${seedBytes} bytes.`)
  const { publicKey } = nacl.sign.keyPair.fromSeed(seed)
  return {
    publicKey,
    publicKeyBase58: bs58.encode(publicKey),
    sign: signerOf(seed),
    deriveSecret: (purpose) => new Uint8Array(hkdfSync('sha256', seed, '', purpose, 32)),
  }
}
