import { createHash } from 'node:crypto'

/** Returns the stored form of a used signature: the SHA-256 of the signature (64 bytes) and the DID. */
export function signatureHash(did: string, signature: Uint8Array): Uint8Array {
  return createHash('sha256').update(signature).update(did).digest()
}
