import type { WirePart } from '@parley/wire/codecs/parley/shapes'
import { signedForms } from '@parley/wire/codecs/parley/task'
import type { Part } from '@parley/wire/model/task'
import canonicalize from 'canonicalize'
import { readBase58, writeBase58 } from './base58.ts'
import { verifyEd25519 } from './ed25519.ts'
import type { KeyPair } from './keys.ts'
import { readSignature } from './signature.ts'

/** Fields of `metadata` that contain the signature of a part and its key, both in base58. */
export const partSignature = 'did.message.signature'
export const partKey = 'did.message.key'

/** A part in either wire spelling. */
export type SignedPart = WirePart

/**
 * Signs a part and removes an existing signature from its metadata. Data without an RFC 8785 form (with a lone
 * surrogate) is not signed. Neither are texts in the form of `signingText` or of a JWS: otherwise, a caller could make an
 * agent that echoes its input sign requests or cards in the agent's name.
 */
export function signPart(part: Part, key: KeyPair): Part {
  const { [partSignature]: _signature, [partKey]: _key, ...metadata } = part.metadata ?? {}
  const isOther = part.kind === 'text' && (part.text.startsWith('{"body": ') || isJwsInput(part.text))
  const bytes = isOther ? undefined : signedBytes(part)
  if (bytes === undefined) return { ...part, metadata }
  const signature = writeBase58(key.sign(bytes))
  return { ...part, metadata: { ...metadata, [partSignature]: signature, [partKey]: key.publicKeyBase58 } }
}

/**
 * Whether the text is like the signing input of a JWS (RFC 7515), which is how cards are signed: two segments in base64 with a
 * dot between them. Verifiers compute the second segment from the card, and may be lenient about the first.
 */
function isJwsInput(text: string): boolean {
  const dot = text.indexOf('.')
  return dot !== -1 && (beginsJson(text.slice(0, dot)) || /^ey[I-L][\w-]*$/.test(text.slice(dot + 1)))
}

/** Decoders may skip characters that are not base64, and read JSON in UTF-16 or UTF-32 and after a byte order mark. */
function beginsJson(base64: string): boolean {
  const bytes = Buffer.from(base64.replace(/[^\w+/-]/g, ''), 'base64url').toString('latin1')
  return /^[\s\0\u00bb\u00bf\u00ef\u00fe\u00ff]*\{[\s\0]*"/.test(bytes)
}

export type PartVerdict = 'verified' | 'unsigned' | 'another_key' | 'malformed_input' | 'crypto_mismatch'

/** Verifies the signature of a part with these keys (base58, oldest first); never throws. */
export function verifyPart(part: SignedPart, keys: readonly string[]): PartVerdict {
  const { [partSignature]: signature, [partKey]: keyInPart } = part.metadata ?? {}
  if (signature === undefined) return 'unsigned'
  // Without a key in the metadata, the newest one is used.
  const key = keyInPart ?? keys.at(-1)
  if (typeof key !== 'string' || !keys.includes(key)) return 'another_key'
  const [publicKey, signed] = [
    readBase58(key, 32),
    readSignature(typeof signature === 'string' ? signature : ''),
  ]
  if (publicKey === undefined || signed === undefined) return 'malformed_input'
  const forms = part.kind === 'file' ? signedForms(part.file).map(jcs) : [signedBytes(part)]
  const verifies = (bytes: Uint8Array | undefined) =>
    bytes !== undefined && verifyEd25519(publicKey, bytes, signed)
  return forms.some(verifies) ? 'verified' : 'crypto_mismatch'
}

/** Verifies all parts of a task's artifacts with these keys. */
export function verifyParts(
  task: { artifacts: { name: string; parts: SignedPart[] }[] },
  keys: readonly string[],
): { artifact: string; part: number; kind: Part['kind']; verdict: PartVerdict }[] {
  return task.artifacts.flatMap(({ name, parts }) =>
    parts.map((part, i) => ({ artifact: name, part: i, kind: part.kind, verdict: verifyPart(part, keys) })),
  )
}

/** Returns the bytes to sign: the UTF-8 of a text, or the RFC 8785 form of data or of the file object on the wire. */
function signedBytes(part: SignedPart): Uint8Array | undefined {
  if (part.kind === 'text') return Buffer.from(part.text)
  return jcs(part.kind === 'data' ? part.data : signedForms(part.file)[0])
}

/** Returns the RFC 8785 form of the value; undefined if there is none. */
function jcs(value: object): Uint8Array | undefined {
  try {
    return Buffer.from(canonicalize(value) ?? '')
  } catch {
    return undefined
  }
}
