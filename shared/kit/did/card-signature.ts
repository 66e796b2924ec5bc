import { createHash, createPublicKey, type KeyObject } from 'node:crypto'
import { type Coverage, type SignedForm, signedForms } from '@parley/wire/codecs/signed-card'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'
import canonicalize from 'canonicalize'
import { base64url, decodeProtectedHeader, flattenedVerify } from 'jose'
import { readBase58 } from './base58.ts'
import { cardKeyId, cardKeyIn } from './card-key.ts'
import { verifiedMethods } from './document.ts'
import { isAcceptableKey } from './ed25519.ts'
import { type Identity, signingKeyId } from './identity.ts'
import { RecentMap } from './recent-map.ts'
import { asciiJson } from './signature.ts'

/** The algorithms of keys in DID documents. */
export type CardAlgorithm = 'EdDSA' | 'ES256'

/** A key that signs cards. */
export interface CardSigningKey {
  alg: CardAlgorithm
  /** The DID URL of the key. */
  kid: string
  sign(bytes: Uint8Array): Uint8Array
}

/** One entry of a card's `signatures` (A2A 1.0, section 4.4.7). */
export interface CardSignature {
  protected: string
  signature: string
}

type SignedCard = Record<string, unknown> & { signatures?: CardSignature[] }

/**
 * Signs a card (A2A 1.0, section 8.4) and replaces its signatures. There is one signature for each key and each form that
 * verifiers compute; most cards have one form.
 * @returns the card without signatures if it has no RFC 8785 form (a lone surrogate)
 */
export function signCard(card: object, keys: readonly CardSigningKey[]): SignedCard {
  // The signature covers the JSON that is sent: without absent fields.
  const json = jsonOf(JSON.stringify(card))
  const { signatures: _signatures, ...unsigned } = isObject(json) ? json : {}
  const payloads = new Set(signedForms(unsigned).flatMap((form) => encoded(form) ?? []))
  const signatures = keys.flatMap((key) => [...payloads].map((payload) => signatureOf(payload, key)))
  return signatures.length === 0 ? unsigned : { ...unsigned, signatures }
}

/**
 * Returns a function that signs cards with the keys of an identity. It remembers the latest signatures, because most cards are
 * requested many times and ES256 signatures differ each time.
 */
export function cardSigner(identity: Identity): (card: object) => object {
  const { key, cardKey } = identity
  const kid = signingKeyId(identity)
  const keys: CardSigningKey[] = [{ alg: 'EdDSA', kid, sign: (bytes) => key.sign(bytes) }]
  if (cardKey !== undefined)
    keys.push({ alg: 'ES256', kid: cardKeyId(kid), sign: (bytes) => cardKey.sign(bytes) })
  const recent = new RecentMap<string, SignedCard['signatures']>(1000)
  return (card) => {
    const name = createHash('sha256').update(JSON.stringify(card)).digest('base64')
    const signatures = recent.get(name) ?? signCard(card, keys).signatures
    recent.set(name, signatures)
    return { ...card, signatures }
  }
}

function signatureOf(payload: string, key: CardSigningKey): CardSignature {
  const { alg, kid } = key
  const header = base64url.encode(JSON.stringify({ alg, typ: 'JOSE', kid }))
  return { protected: header, signature: base64url.encode(key.sign(Buffer.from(`${header}.${payload}`))) }
}

/** Returns the base64url of the RFC 8785 form; undefined if there is none. */
function encoded({ form, ascii }: SignedForm): string | undefined {
  try {
    const text = canonicalize(form) ?? ''
    return base64url.encode(ascii ? asciiJson(text) : text)
  } catch {
    return undefined
  }
}

export type CardFault =
  | 'unsigned'
  | 'malformed'
  | 'too_many_signatures'
  | 'unsupported_algorithm'
  | 'unknown_key'
  | 'mismatch'

/** `message` is a sentence. */
export type CardVerdict =
  | { verified: true; kid: string; alg: CardAlgorithm; covers: Coverage }
  | { verified: false; reason: CardFault; message: string }

/** Returns the public key of a DID URL; undefined if there is none for the algorithm. */
export type CardKeyOf = (
  kid: string,
  alg: CardAlgorithm,
) => KeyObject | undefined | Promise<KeyObject | undefined>

const messages: Record<CardFault, string> = {
  unsigned: 'The card has no signature.',
  malformed: 'The signature is malformed.',
  too_many_signatures: 'The card has too many signatures.',
  unsupported_algorithm: 'The signature has another algorithm than EdDSA and ES256.',
  unknown_key: 'The key of the signature cannot be found in the DID document that its kid names.',
  mismatch: 'The card differs from the one that was signed, or another key signed it.',
}

const signaturesMax = 16
/** Keys may have to be fetched, so the signatures of a card may name only a few. */
const keysMax = 4
const textMax = 4096

/**
 * Verifies the signatures of a card. One valid signature is sufficient; one that covers every field is preferred. Keys come only
 * from `keyOf`: a `jku` or a key in the header is ignored. Never throws.
 */
export async function verifyCard(card: Record<string, unknown>, keyOf: CardKeyOf): Promise<CardVerdict> {
  const { signatures } = card
  if (!Array.isArray(signatures) || signatures.length === 0) return fault('unsigned')
  if (signatures.length > signaturesMax) return fault('too_many_signatures')
  const keys = new Map<string, KeyObject | undefined>()
  const find = async (kid: string, alg: CardAlgorithm) => {
    const name = `${alg} ${kid}`
    if (!keys.has(name)) {
      if (keys.size >= keysMax) return undefined
      keys.set(name, await Promise.resolve(keyOf(kid, alg)).catch(() => undefined))
    }
    return keys.get(name)
  }
  const payloads = signedForms(card).flatMap((form) => {
    const payload = encoded(form)
    return payload === undefined ? [] : [{ payload, covers: form.covers }]
  })
  let best: CardVerdict | undefined
  for (const signature of signatures) {
    const verdict = await verdictOf(signature, payloads, find)
    if (verdict.verified && verdict.covers === 'card') return verdict
    if (best === undefined || (verdict.verified && !best.verified)) best = verdict
  }
  return best ?? fault('unsigned')
}

async function verdictOf(
  given: unknown,
  payloads: readonly { payload: string; covers: Coverage }[],
  keyOf: CardKeyOf,
): Promise<CardVerdict> {
  if (!isObject(given)) return fault('malformed')
  const { protected: header, signature } = given
  if (!isShort(header) || !isShort(signature)) return fault('malformed')
  const read = headerOf(header)
  if (read === undefined) return fault('malformed')
  const { alg, kid } = read
  if (alg !== 'EdDSA' && alg !== 'ES256') return fault('unsupported_algorithm')
  const key = await keyOf(kid, alg)
  if (key === undefined) return fault('unknown_key')
  for (const { payload, covers } of payloads) {
    const jws = { payload, protected: header, signature }
    if (await verifies(jws, key, alg)) return { verified: true, kid, alg, covers }
  }
  return fault('mismatch')
}

function verifies(
  jws: { payload: string; protected: string; signature: string },
  key: KeyObject,
  alg: CardAlgorithm,
): Promise<boolean> {
  return flattenedVerify(jws, key, { algorithms: [alg] }).then(
    () => true,
    () => false,
  )
}

function isShort(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= textMax
}

function headerOf(encodedHeader: string): { alg: unknown; kid: string } | undefined {
  try {
    const { alg, kid } = decodeProtectedHeader({ protected: encodedHeader })
    return typeof kid === 'string' && kid.length <= 1024 ? { alg, kid } : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns the look-up of keys in the document of a DID (`did:parley`).
 * @throws DocumentFault if the document does not belong to the DID
 */
export function cardKeysOf(document: unknown, did: string): CardKeyOf {
  const methods = verifiedMethods(document, did)
  return (kid, alg) => {
    if (alg === 'ES256') return cardKeyIn(document, kid, methods)
    const method = methods.find(({ id }) => id === kid)
    return method && ed25519Key(method.publicKeyBase58)
  }
}

/** Returns an Ed25519 key; undefined if it is not acceptable. */
export function ed25519Key(base58: string): KeyObject | undefined {
  const bytes = readBase58(base58, 32)
  if (bytes === undefined || !isAcceptableKey(bytes)) return undefined
  return createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: base64url.encode(bytes) },
    format: 'jwk',
  })
}

function fault(reason: CardFault): CardVerdict {
  return { verified: false, reason, message: messages[reason] }
}

/**
 * Returns the SHA-256 of the card's RFC 8785 form, as lower-case hex, with its signatures.
 * @returns undefined if the card has no such form
 */
export function cardDigest(card: Record<string, unknown>): string | undefined {
  try {
    return createHash('sha256')
      .update(canonicalize(card) ?? '')
      .digest('hex')
  } catch {
    return undefined
  }
}
