import { readBase58 } from '@parley/kit/did/base58'
import { verifySigned } from '@parley/kit/did/signature'

export interface SignedBy {
  did: string
  /** The header, as it came. */
  timestamp: unknown
  /** The header, as it came. */
  audience?: unknown
  body: Uint8Array
  /** Present once the request was verified by the key that the OAuth server knows. */
  signature: Uint8Array | undefined
}

/** Which of the keys (base58) signed the request too, if one did: the OAuth server's key need not be that of the document. */
export function signedByOneOf(
  keys: readonly string[],
  { did, timestamp, audience, body, signature }: SignedBy,
): string | undefined {
  if (signature === undefined) return undefined
  const bound = typeof audience === 'string' ? { audience } : {}
  const signed = { ...bound, did, body: Buffer.from(body).toString('utf8'), timestamp: Number(timestamp) }
  return keys.find((base58) => {
    const key = readBase58(base58, 32)
    return key !== undefined && verifySigned(signed, signature, key)
  })
}
