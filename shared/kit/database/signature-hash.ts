import { createHash } from 'node:crypto'

/** What is kept of a signature that was taken once: SHA-256 of it (64 bytes) and the DID. */
export function signatureHash(did: string, signature: Uint8Array): Uint8Array {
  return createHash('sha256').update(signature).update(did).digest()
}
