import bs58 from 'bs58'
import { readBase58 } from './base58.ts'
import { signatureBytes, verifyEd25519 } from './ed25519.ts'
import type { KeyPair } from './keys.ts'

/** Header names in lower case, as in Node (spec/authentication.md#did-signatures). */
export const signatureHeaders = ['x-did', 'x-did-timestamp', 'x-did-signature'] as const

/** Optional header, covered by the signature, that names the only server that may accept the request. */
export const audienceHeader = 'x-did-audience'

export interface SignedText {
  /** If absent, the signature uses the reference form, which has no audience. */
  audience?: string
  did: string
  /** The body as text, exactly as it is sent; empty for a GET. */
  body: string
  /** Unix seconds. */
  timestamp: number
}

/**
 * Returns the text to sign: what Python's `json.dumps({"body", "did", "timestamp"}, sort_keys=True)` returns, with
 * its default separators and with DEL and all non-ASCII characters as `\uXXXX`. An audience is the first field.
 */
export function signingText(signed: SignedText): string {
  return asciiJson(rawSigningText(signed))
}

/** Escapes DEL and all non-ASCII characters as Python's `json.dumps` does. */
export function asciiJson(text: string): string {
  return text.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Returns the same text with `ensure_ascii=False`, which some clients sign. */
export function rawSigningText({ audience, did, body, timestamp }: SignedText): string {
  const first = audience === undefined ? '' : `"audience": ${JSON.stringify(audience)}, `
  return `{${first}"body": ${JSON.stringify(body)}, "did": ${JSON.stringify(did)}, "timestamp": ${timestamp}}`
}

export interface RequestToSign {
  did: string
  key: Pick<KeyPair, 'sign'>
  /** The body, empty by default, as for a GET. A lone surrogate becomes U+FFFD, as in UTF-8 encoding. */
  body?: string
  /** Unix seconds; the default is now. */
  timestamp?: number
  /** As in `SignedText`. */
  audience?: string
}

export type SignatureHeaders = Record<(typeof signatureHeaders)[number], string> &
  Partial<Record<typeof audienceHeader, string>>

/** Returns the signature headers of a request with this body, including the audience if there is one. */
export function signRequest({
  did,
  key,
  body = '',
  timestamp = unixNow(),
  audience,
}: RequestToSign): SignatureHeaders {
  const bound = audience === undefined ? {} : { audience }
  const text = signingText({ ...bound, did, body: body.toWellFormed(), timestamp })
  return {
    ...(audience !== undefined && { [audienceHeader]: audience }),
    'x-did': did,
    'x-did-timestamp': String(timestamp),
    'x-did-signature': bs58.encode(key.sign(Buffer.from(text))),
  }
}

/** Whether the key has signed this request, in either form. */
export function verifySigned(signed: SignedText, signature: Uint8Array, publicKey: Uint8Array): boolean {
  const verifies = (text: string) => verifyEd25519(publicKey, Buffer.from(text), signature)
  const [escaped, raw] = [signingText(signed), rawSigningText(signed)]
  return verifies(escaped) || (raw !== escaped && verifies(raw))
}

/** Decodes a base58 signature; undefined unless it has exactly 64 bytes. */
export function readSignature(base58: string): Uint8Array | undefined {
  return readBase58(base58, signatureBytes)
}

export function unixNow(): number {
  return Math.floor(Date.now() / 1000)
}
