import type { WirePart } from '@parley/wire/codecs/parley/shapes'
import { signedForms } from '@parley/wire/codecs/parley/task'
import type { Part } from '@parley/wire/model/task'
import bs58 from 'bs58'
import canonicalize from 'canonicalize'
import { readBase58 } from './base58.ts'
import { verifyEd25519 } from './ed25519.ts'
import type { KeyPair } from './keys.ts'
import { readSignature } from './signature.ts'

/** Where the signature of a part and its key stand in `metadata`, both base58. */
export const partSignature = 'did.message.signature'
export const partKey = 'did.message.key'

/** A part in either spelling of the wire. */
export type SignedPart = WirePart

/**
 * The part with our signature; what stood in its place, in the metadata of a part that came from elsewhere, is gone. Goes
 * without: data that has no RFC 8785 form (a lone surrogate), and a text that is a request to be signed (`signingText`), for
 * else a caller could bring an agent that repeats what it is told to sign requests in its own name.
 */
export function signPart(part: Part, key: KeyPair): Part {
  const { [partSignature]: _signature, [partKey]: _key, ...kept } = part.metadata ?? {}
  const isRequest = part.kind === 'text' && part.text.startsWith('{"body": ')
  const bytes = isRequest ? undefined : signedBytes(part)
  if (bytes === undefined) return { ...part, metadata: kept }
  const signature = bs58.encode(key.sign(bytes))
  return { ...part, metadata: { ...kept, [partSignature]: signature, [partKey]: key.publicKeyBase58 } }
}

export type PartVerdict = 'verified' | 'unsigned' | 'another_key' | 'malformed_input' | 'crypto_mismatch'

/** What the signature of a part is worth, for one who holds these keys (base58); never throws. */
export function verifyPart(part: SignedPart, keys: readonly string[]): PartVerdict {
  const { [partSignature]: signature, [partKey]: named } = part.metadata ?? {}
  if (signature === undefined) return 'unsigned'
  // Whoever names no key means the newest.
  const key = named ?? keys.at(-1)
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

/** Every part of a task's artifacts; all are `verified` in a task that these keys vouch for. */
export function verifyParts(
  task: { artifacts: { name: string; parts: SignedPart[] }[] },
  keys: readonly string[],
): { artifact: string; part: number; kind: Part['kind']; verdict: PartVerdict }[] {
  return task.artifacts.flatMap(({ name, parts }) =>
    parts.map((part, i) => ({ artifact: name, part: i, kind: part.kind, verdict: verifyPart(part, keys) })),
  )
}

/** Of a text its UTF-8; of data its RFC 8785 form; of a file that of its object as our wire has it. */
function signedBytes(part: SignedPart): Uint8Array | undefined {
  if (part.kind === 'text') return Buffer.from(part.text)
  return jcs(part.kind === 'data' ? part.data : signedForms(part.file)[0])
}

/** Undefined when there is none. */
function jcs(value: object): Uint8Array | undefined {
  try {
    return Buffer.from(canonicalize(value) ?? '')
  } catch {
    return undefined
  }
}
