import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { ParleyError } from '@parley/wire/errors'
import { calculateJwkThumbprint, EmbeddedJWK, errors, type JWTPayload, jwtVerify } from 'jose'

/** The rules by which a server accepts DPoP proofs (RFC 9449, spec/authentication.md#dpop). */
export interface ProofRules {
  /** The addresses at which clients reach this server directly. A proof names one of them. */
  addresses: () => readonly string[]
  accepted: AcceptedProofs
}

/** Records accepted proofs; all processes of a server share it. */
export interface AcceptedProofs {
  /** Returns true the first time, then false until `until` (milliseconds since 1970). */
  takeProof(id: Uint8Array, until: number): Promise<boolean>
}

/** Values of `data.reason` in an InvalidToken. */
export type ProofFault =
  | 'proof_missing'
  | 'malformed_proof'
  | 'proof_crypto_mismatch'
  | 'proof_method_mismatch'
  | 'proof_url_mismatch'
  | 'proof_out_of_window'
  | 'proof_token_mismatch'
  | 'proof_key_mismatch'
  | 'proof_replayed'

export interface ProvenRequest {
  headers: IncomingHttpHeaders
  method: string
  /** Path and query as the server received them. */
  url: string
  /** The access token of the request. */
  token: string
  /** The thumbprint of the key to which the token is bound. */
  jkt: string
}

/** The algorithms of proofs. The embedded OAuth server accepts the same ones. */
export const proofAlgorithms = ['ES256', 'Ed25519', 'EdDSA'] as const
/** Maximum deviation of `iat` from the clock of this server, in either direction. */
const windowSeconds = 60
const proofMaxChars = 4096
const jtiMaxChars = 256

/**
 * Checks the proof of possession (RFC 9449, section 4.3) and accepts it once.
 * @throws ParleyError InvalidToken with the reason, Unavailable if the proof cannot be recorded
 */
export async function checkProof(request: ProvenRequest, { accepted, addresses }: ProofRules): Promise<void> {
  const { payload, jkt } = await verifiedProof(request.headers['dpop'])
  const { htm, htu, iat, jti, ath } = payload
  if (htm !== request.method) throw proofRefused('proof_method_mismatch')
  if (typeof htu !== 'string' || !isAddressed(htu, request.url, addresses()))
    throw proofRefused('proof_url_mismatch')
  if (iat === undefined || Math.abs(Date.now() / 1000 - iat) > windowSeconds)
    throw proofRefused('proof_out_of_window')
  if (typeof jti !== 'string' || jti === '' || jti.length > jtiMaxChars) throw proofRefused('malformed_proof')
  if (ath !== sha256(request.token).toString('base64url')) throw proofRefused('proof_token_mismatch')
  if (jkt !== request.jkt) throw proofRefused('proof_key_mismatch')
  const until = (Math.ceil(iat) + windowSeconds + 1) * 1000
  if (!(await accepted.takeProof(sha256(`${jkt} ${jti}`), until))) throw proofRefused('proof_replayed')
}

/** The error of a bound token without a valid proof (RFC 9449, section 7.1). */
export function proofRefused(reason: ProofFault): ParleyError {
  return dpopError('invalid_dpop_proof', reason, descriptions[reason])
}

/** The error of a token that is bound to a key and sent as a bearer token. */
export function sentAsBearer(): ParleyError {
  const description = 'The token is bound to a key: send it as Authorization: DPoP with a proof'
  return dpopError('invalid_token', 'proof_missing', description)
}

function dpopError(error: string, reason: ProofFault, message: string): ParleyError {
  const challenge = `DPoP error="${error}", error_description="${message}", algs="${proofAlgorithms.join(' ')}"`
  return new ParleyError('InvalidToken', {
    message,
    data: { reason },
    headers: { 'www-authenticate': challenge },
  })
}

const descriptions: Record<ProofFault, string> = {
  proof_missing: 'The token is bound to a key: send one DPoP header with a proof',
  malformed_proof:
    'The DPoP proof is not a JWT of type dpop+jwt with a public key, jti, htm, htu, iat and ath',
  proof_crypto_mismatch: 'The signature of the DPoP proof does not verify',
  proof_method_mismatch: 'The DPoP proof is for another HTTP method',
  proof_url_mismatch: 'The DPoP proof is for another URL: sign the public address of this server',
  proof_out_of_window:
    'The DPoP proof is not recent: iat must be within 60 seconds of the clock of this server',
  proof_token_mismatch: 'The DPoP proof is for another access token',
  proof_key_mismatch: 'The token is bound to another key than that of the DPoP proof',
  proof_replayed: 'The DPoP proof has been used before: send a new one with each request',
}

async function verifiedProof(proof: unknown): Promise<{ payload: JWTPayload; jkt: string }> {
  if (proof === undefined) throw proofRefused('proof_missing')
  // Node.js joins repeated headers with a comma, which no JWT contains.
  if (typeof proof !== 'string' || proof.length > proofMaxChars) throw proofRefused('malformed_proof')
  try {
    const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, {
      algorithms: [...proofAlgorithms],
      typ: 'dpop+jwt',
    })
    if (protectedHeader.jwk === undefined) throw proofRefused('malformed_proof')
    return { payload, jkt: await calculateJwkThumbprint(protectedHeader.jwk) }
  } catch (error) {
    if (error instanceof ParleyError) throw error
    const isForged = error instanceof errors.JWSSignatureVerificationFailed
    throw proofRefused(isForged ? 'proof_crypto_mismatch' : 'malformed_proof')
  }
}

/** Whether the proof names this request at one of the server's addresses, without query and fragment. */
function isAddressed(htu: string, url: string, addresses: readonly string[]): boolean {
  const signed = normalized(htu)
  if (signed === undefined || !url.startsWith('/')) return false
  return addresses.some((base) => normalized(base.replace(/\/+$/, '') + url) === signed)
}

/** Returns the URL in the normal form of RFC 3986, sections 6.2.2 and 6.2.3, without query and fragment. */
function normalized(text: string): string | undefined {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    return undefined
  const path = url.pathname.replace(/%[\da-f]{2}/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
    return /[\w.~-]/.test(character) ? character : encoded.toUpperCase()
  })
  return url.origin + path
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
