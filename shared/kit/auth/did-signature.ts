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

/** Signature requirements of a server (spec/authentication.md#did-signatures). */
export interface SignatureRules {
  /** If absent, public keys cannot be read, and signed requests are rejected. */
  clientKeys?: ClientKeys
  /**
   * If set, clients that are DIDs must sign, and each signature of a write is accepted once. Otherwise it is
   * optional.
   */
  required?: { accepted: AcceptedSignatures; shared?: SharedSignatures }
}

/** Records accepted signatures; all replicas of a server share it. */
export interface AcceptedSignatures {
  /** Returns true the first time, then false until `until` (milliseconds since 1970). */
  takeSignature(did: string, signature: Uint8Array, until: number): Promise<boolean>
}

/** Records the signed requests that any agent of the deployment has accepted. */
export interface SharedSignatures {
  /**
   * Returns false if another agent has claimed the signature.
   * @throws ParleyError Unavailable if the claim cannot be made
   */
  claimSignature(did: string, signature: Uint8Array): Promise<boolean>
  /** Whether only this agent accepts the signed audience. Such a request needs no claim. */
  isOnlyHere(audience: string): boolean
}

/** A verified signature and the audience that it covers. */
export interface CheckedSignature {
  signature: Uint8Array
  audience?: string
}

export interface SignedRequest {
  headers: IncomingHttpHeaders
  /** The raw bytes of the body; empty for a GET. */
  body: Uint8Array
  /** The token's `client_id`; empty if absent. */
  clientId: string
  /** Whether an audience names this server. If absent, requests with an audience are rejected. */
  names?: (audience: string) => boolean
}

/** Values of `data.reason` in an InvalidTokenSignature. */
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

/** Maximum deviation from the clock of this server, in either direction (spec/authentication.md#did-signatures). */
const windowSeconds = 300
const audienceMaxChars = 2048
const headersOfSignature = [...signatureHeaders, audienceHeader]
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Whether the request is signed, or must be. A request with only some of the headers counts as signed. */
export function expectsSignature(
  { headers, clientId }: SignedRequest,
  { required }: SignatureRules,
): boolean {
  if (required !== undefined && clientId.startsWith('did:')) return true
  return headersOfSignature.some((name) => headers[name] !== undefined)
}

/**
 * Checks the signature of the request in the order of spec/authentication.md#did-signatures.
 * @throws ParleyError InvalidTokenSignature with the reason, Unavailable if the provider does not respond
 */
export async function checkDidSignature(
  request: SignedRequest,
  rules: SignatureRules,
): Promise<CheckedSignature> {
  requireHeaders(request)
  requireDidClient(request)
  requireDidOfClient(request)
  const publicKey = await requirePublicKey(request, rules)
  const timestamp = requireTimestamp(request)
  const audience = requireAudience(request)
  const signature = requireSignature(request)
  const text = signedText(request, timestamp, audience)
  if (!verifySigned(text, signature, publicKey))
    await requireNewKeyVerifies(request, rules, { text, signature, publicKey })
  return { signature, ...(audience !== undefined && { audience }) }
}

/**
 * Checks that the request was signed with this key, for clients that present a key before registering it.
 * @throws ParleyError InvalidTokenSignature with the reason
 */
export function checkSignedBy(request: SignedRequest, publicKey: Uint8Array): void {
  requireHeaders(request)
  requireDidClient(request)
  requireDidOfClient(request)
  const timestamp = requireTimestamp(request)
  const audience = requireAudience(request)
  const signature = requireSignature(request)
  if (!verifySigned(signedText(request, timestamp, audience), signature, publicKey))
    throw refused('crypto_mismatch')
}

/**
 * Accepts the signature once. The claim across agents comes first: if its response is lost, the request may be
 * repeated.
 * @throws ParleyError InvalidTokenSignature `replayed` if it was accepted before, Unavailable if the claim cannot be
 * made
 */
export async function takeOnce(
  did: string,
  { signature, audience }: CheckedSignature,
  { accepted, shared }: NonNullable<SignatureRules['required']>,
): Promise<void> {
  if (shared !== undefined && !(audience !== undefined && shared.isOnlyHere(audience))) {
    if (!(await shared.claimSignature(did, signature))) throw refused('replayed')
  }
  // A timestamp ahead of the clock of this server is valid for twice the window.
  const until = (unixNow() + 2 * windowSeconds + 1) * 1000
  if (!(await accepted.takeSignature(did, signature, until))) throw refused('replayed')
}

function requireHeaders({ headers }: SignedRequest): void {
  if (signatureHeaders.some((name) => headers[name] === undefined)) throw refused('missing_signature_headers')
}

function requireDidClient({ clientId }: SignedRequest): void {
  if (!clientId.startsWith('did:')) throw refused('client_not_did')
}

/** Node.js joins a repeated header with a comma, which no DID contains. */
function requireDidOfClient({ headers, clientId }: SignedRequest): void {
  const did = headers['x-did']
  if (typeof did !== 'string' || !isDid(did)) throw refused('malformed_input')
  if (did !== clientId) throw refused('did_mismatch')
}

async function requirePublicKey(
  { clientId }: SignedRequest,
  { clientKeys }: SignatureRules,
): Promise<Uint8Array> {
  const key = await clientKeys?.publicKey(clientId)
  if (key === undefined) throw refused('public_key_unavailable')
  return key
}

function requireTimestamp({ headers }: SignedRequest): number {
  const text = headers['x-did-timestamp']
  // The signature covers the text, so only the canonical decimal form is accepted.
  if (typeof text !== 'string' || !/^(0|[1-9]\d{0,11})$/.test(text)) throw refused('malformed_input')
  const timestamp = Number(text)
  if (Math.abs(unixNow() - timestamp) > windowSeconds) throw refused('timestamp_out_of_window')
  return timestamp
}

/** A request signed for one server is not accepted by another (docs/decisions/0005-signatures.md). */
function requireAudience({ headers, names }: SignedRequest): string | undefined {
  const audience = headers[audienceHeader]
  if (audience === undefined) return undefined
  if (typeof audience !== 'string' || audience === '' || audience.length > audienceMaxChars)
    throw refused('malformed_input')
  if (names?.(audience) !== true) throw refused('audience_mismatch')
  return audience
}

function requireSignature({ headers }: SignedRequest): Uint8Array {
  const text = headers['x-did-signature']
  const signature = typeof text === 'string' ? readSignature(text) : undefined
  if (signature === undefined) throw refused('malformed_input')
  return signature
}

function signedText(
  { clientId, body }: SignedRequest,
  timestamp: number,
  audience: string | undefined,
): SignedText {
  const bound = audience === undefined ? {} : { audience }
  return { ...bound, did: clientId, body: textOf(body), timestamp }
}

/** Reads the key again, because the client may have changed it since it was cached. */
async function requireNewKeyVerifies(
  { clientId }: SignedRequest,
  { clientKeys }: SignatureRules,
  { text, signature, publicKey }: { text: SignedText; signature: Uint8Array; publicKey: Uint8Array },
): Promise<void> {
  const current = await clientKeys?.publicKey(clientId, true)
  if (current === undefined) throw refused('public_key_unavailable')
  const isChanged = Buffer.compare(current, publicKey) !== 0
  if (!isChanged || !verifySigned(text, signature, current)) throw refused('crypto_mismatch')
}

/** A body that is not UTF-8 cannot have been signed. */
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
