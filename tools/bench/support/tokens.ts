import { keyPairFromSeed } from '@parley/kit/did/keys'

/** Matches the tokens that the benchmarks' OAuth server accepts: 43 characters, like 256 random bits in base64url. */
export const tokenPattern = /bench-token-\d{4}-[x]{26}/

export function tokenOf(number: number): string {
  return `bench-token-${String(number).padStart(4, '0')}-${'x'.repeat(26)}`
}

/** The client id for a token. Every client in the benchmarks is a DID with the same key. */
export const clientOf = (token: string) => `did:parley:bench:agent:${token.slice(12, 16)}`
export const benchKey = keyPairFromSeed(Buffer.alloc(32, 7))
