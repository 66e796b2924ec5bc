import type { IncomingHttpHeaders } from 'node:http'
import { ParleyError } from '@parley/wire/errors'
import { isDid } from '../did/did.ts'
import {
  audienceHeader,
  readSignature,
  type SignedText,
  signatureHeaders,
  unixNow,
  verifySigned,
} from '../did/signature.ts'
import type { ClientKeys } from './client-keys.ts'

/** What a server requires of signatures (spec/authentication.md#did-signatures). */
export interface SignatureRules {
  /** Absent: nobody's key is known, and a signed request is refused. */
  clientKeys?: ClientKeys
  /** Clients that are DIDs must sign, and what they sign for writing is taken once. Absent: who wants to signs. */
  required?: { seen: SeenSignatures; shared?: SharedSignatures }
}

/** Signatures that were taken, shared by all replicas of a server. */
export interface SeenSignatures {
  /** True the first time, false until `until` (milliseconds since 1970). */
  takeSignature(did: string, signature: Uint8Array, until: number): Promise<boolean>
}

/** What all agents of a deployment know of the signed requests that they took. */
export interface SharedSignatures {
  /**
   * False when another agent has claimed the signature.
   * @throws ParleyError Unavailable when that cannot be found out
   */
  claimSignature(did: string, signature: Uint8Array): Promise<boolean>
  /** Whether only this agent accepts requests with the signed audience: nothing to claim then. */
  isOnlyHere(audience: string): boolean
}

/** A signature that verified, and the audience that was signed with it. */
export interface CheckedSignature {
  signature: Uint8Array
  audience?: string
}

export interface SignedRequest {
  headers: IncomingHttpHeaders
  /** The raw bytes; none for a GET. */
  body: Uint8Array
  /** The token's `client_id`, or nothing where it has none. */
  clientId: string
  /** Whether an audience is this server. Absent: a request that names one is refused. */
  names?: (audience: string) => boolean
}

/** `data.reason` of an InvalidTokenSignature. */
export type SignatureFault =
  | 'missing_signature_headers'
  | 'client_not_did'
  | 'did_mismatch'
  | 'public_key_unavailable'
  | 'timestamp_out_of_window'
  | 'malformed_input'
  | 'crypto_mismatch'
  | 'audience_mismatch'
  | 'replayed'

/** What the steps look at and find out. */
interface Attempt extends SignedRequest {
  publicKey: Uint8Array
  timestamp: number
  signature: Uint8Array
  audience?: string
}

type Step = (attempt: Attempt, rules: SignatureRules) => void | Promise<void>

/** The checks in their order (spec/authentication.md#did-signatures); the cheap parts of the last one come first. */
const steps: Step[] = [
  allHeadersAreThere,
  clientIsADid,
  didIsTheClients,
  clientHasAKey,
  timestampIsNear,
  audienceIsThisServer,
  signatureVerifies,
]

/** Difference to our clock, in either direction (spec/authentication.md#did-signatures). */
const windowSeconds = 300
const audienceMaxChars = 2048
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The signature of the request; undefined when it carries none and need not.
 * @throws ParleyError InvalidTokenSignature with the reason, Unavailable when the provider does not answer
 */
export async function checkDidSignature(
  request: SignedRequest,
  rules: SignatureRules,
): Promise<CheckedSignature | undefined> {
  const isSigned = [...signatureHeaders, audienceHeader].some((name) => request.headers[name] !== undefined)
  if (!isSigned && !(rules.required !== undefined && request.clientId.startsWith('did:'))) return undefined
  const attempt = { ...request } as Attempt
  for (const step of steps) await step(attempt, rules)
  const { signature, audience } = attempt
  return { signature, ...(audience !== undefined && { audience }) }
}

/**
 * Whether this key signed the request: for whoever shows a key that nobody knows yet.
 * @throws ParleyError InvalidTokenSignature with the reason
 */
export function checkSignedBy(request: SignedRequest, publicKey: Uint8Array): void {
  const attempt = { ...request, publicKey } as Attempt
  for (const step of [
    allHeadersAreThere,
    clientIsADid,
    didIsTheClients,
    timestampIsNear,
    audienceIsThisServer,
  ])
    step(attempt)
  if (!verifySigned(signedTextOf(attempt), attempt.signature, publicKey)) throw refused('crypto_mismatch')
}

/**
 * Claims it for this agent first: when the answer to the claim is lost, the same request may be sent again.
 * @throws ParleyError InvalidTokenSignature `replayed` when it was taken before, Unavailable when that cannot be found out
 */
export async function takeOnce(
  did: string,
  { signature, audience }: CheckedSignature,
  { seen, shared }: NonNullable<SignatureRules['required']>,
): Promise<void> {
  if (shared !== undefined && !(audience !== undefined && shared.isOnlyHere(audience))) {
    if (!(await shared.claimSignature(did, signature))) throw refused('replayed')
  }
  // A timestamp ahead of our clock is good for twice the window.
  const until = (unixNow() + 2 * windowSeconds + 1) * 1000
  if (!(await seen.takeSignature(did, signature, until))) throw refused('replayed')
}

function allHeadersAreThere({ headers }: Attempt): void {
  if (signatureHeaders.some((name) => headers[name] === undefined)) throw refused('missing_signature_headers')
}

function clientIsADid({ clientId }: Attempt): void {
  if (!clientId.startsWith('did:')) throw refused('client_not_did')
}

/** A header that came twice reaches us as one, joined by a comma, which no DID has. */
function didIsTheClients({ headers, clientId }: Attempt): void {
  const did = headers['x-did']
  if (typeof did !== 'string' || !isDid(did)) throw refused('malformed_input')
  if (did !== clientId) throw refused('did_mismatch')
}

async function clientHasAKey(attempt: Attempt, { clientKeys }: SignatureRules): Promise<void> {
  const key = await clientKeys?.publicKey(attempt.clientId)
  if (key === undefined) throw refused('public_key_unavailable')
  attempt.publicKey = key
}

function timestampIsNear(attempt: Attempt): void {
  const text = attempt.headers['x-did-timestamp']
  // As Python writes an integer: that is what was signed.
  if (typeof text !== 'string' || !/^(0|[1-9]\d{0,11})$/.test(text)) throw refused('malformed_input')
  const timestamp = Number(text)
  if (Math.abs(unixNow() - timestamp) > windowSeconds) throw refused('timestamp_out_of_window')
  attempt.timestamp = timestamp
}

/** What was signed for one server is not accepted by another (docs/decisions/0005-signatures.md). */
function audienceIsThisServer(attempt: Attempt): void {
  const audience = attempt.headers[audienceHeader]
  if (audience === undefined) return
  if (typeof audience !== 'string' || audience === '' || audience.length > audienceMaxChars)
    throw refused('malformed_input')
  if (attempt.names?.(audience) !== true) throw refused('audience_mismatch')
  attempt.audience = audience
}

/** A key that changed since it was read is read once more. */
async function signatureVerifies(attempt: Attempt, { clientKeys }: SignatureRules): Promise<void> {
  const { publicKey, clientId } = attempt
  const signed = signedTextOf(attempt)
  const { signature } = attempt
  if (verifySigned(signed, signature, publicKey)) return
  const fresh = await clientKeys?.publicKey(clientId, true)
  if (fresh === undefined) throw refused('public_key_unavailable')
  const changed = Buffer.compare(fresh, publicKey) !== 0
  if (!changed || !verifySigned(signed, signature, fresh)) throw refused('crypto_mismatch')
}

/** Reads the signature as well. */
function signedTextOf(attempt: Attempt): SignedText {
  const text = attempt.headers['x-did-signature']
  const signature = typeof text === 'string' ? readSignature(text) : undefined
  if (signature === undefined) throw refused('malformed_input')
  attempt.signature = signature
  const bound = attempt.audience === undefined ? {} : { audience: attempt.audience }
  return { ...bound, did: attempt.clientId, body: textOf(attempt.body), timestamp: attempt.timestamp }
}

/** Bytes that are no text cannot have been signed. */
function textOf(body: Uint8Array): string {
  try {
    return utf8.decode(body)
  } catch {
    throw refused('crypto_mismatch')
  }
}

function refused(reason: SignatureFault): ParleyError {
  return new ParleyError('InvalidTokenSignature', { data: { reason } })
}
