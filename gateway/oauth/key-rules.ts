import { readPublicKey } from '@parley/kit/auth/client-keys'
import { didMethod, keyId } from '@parley/kit/did/did'
import { isLinked } from '@parley/kit/did/key-link'
import { ParleyError } from '@parley/wire/errors'
import bs58 from 'bs58'
import { type ClientMetadata, errors, type KoaContextWithOIDC } from 'oidc-provider'
import { z } from 'zod'
import { requestedClientId } from './client-rules.ts'

const keysMax = 100
const text = z.string().max(128)
/** Has the same format as `keyHistory` in a DID document. */
const keyHistory = z
  .array(z.object({ publicKeyBase58: text, signature: text.exactOptional() }))
  .min(1)
  .max(keysMax)

/** Returns the Ed25519 keys (base58) that authenticate a DID, or an empty list if the DID cannot be resolved. */
export type KeysOf = (did: string) => Promise<readonly string[]>

/** The resolved keys of did:web registrations in progress. */
const listedKeys = new WeakMap<KoaContextWithOIDC, readonly string[]>()

/**
 * Resolves a did:web client id for `checkKeys`.
 * @throws ParleyError Unavailable when too many DIDs are being resolved
 */
export async function readListedKeys(ctx: KoaContextWithOIDC, keysOf: KeysOf): Promise<void> {
  const did = requestedClientId(ctx)
  if (did?.startsWith('did:web:') !== true) return
  const keys = await keysOf(did).catch((error: unknown) => {
    if (error instanceof ParleyError && error.error === 'InvalidParams') return []
    throw error
  })
  listedKeys.set(ctx, keys)
}

/**
 * Validates the keys of clients that register or update themselves. A DID requires its key, and a new key must be signed
 * by the current one (`key_history`).
 * @throws InvalidClientMetadata
 */
export function checkKeys(metadata: ClientMetadata, currentKey: unknown, ctx: KoaContextWithOIDC): void {
  const key = metadata['public_key']
  const history = historyOf(metadata)
  checkDid(metadata.client_id, key, history[0])
  if (metadata.client_id.startsWith('did:web:') && key !== currentKey) checkWebKey(key, currentKey, ctx)
  if (typeof currentKey !== 'string' || key === currentKey) return
  // A signature by an older key in the history is not sufficient, because that key may have been retired after a leak.
  if (key === undefined || !history.slice(0, -1).includes(currentKey))
    refuse('a new public_key requires a key_history in which the current key signs it')
}

/** Returns the keys, oldest first. The last one is `public_key`. */
function historyOf(metadata: ClientMetadata): unknown[] {
  if (metadata['key_history'] === undefined) return [metadata['public_key']]
  const history = keyHistory.safeParse(metadata['key_history']).data
  if (
    history === undefined ||
    history.at(-1)?.publicKeyBase58 !== metadata['public_key'] ||
    !isLinked(history)
  )
    refuse(
      'key_history must end with public_key, and each key except the first must be signed by the previous one',
    )
  return history.map(({ publicKeyBase58 }) => publicKeyBase58)
}

/**
 * Requires a did:web document to list the client's key. Updates do not resolve the document, so a new key requires a new
 * registration.
 */
function checkWebKey(key: unknown, currentKey: unknown, ctx: KoaContextWithOIDC): void {
  if (currentKey !== undefined)
    refuse('to change the key of a did:web, delete the client and register it again')
  if (typeof key !== 'string' || !(listedKeys.get(ctx) ?? []).includes(key))
    refuse(
      'the document of this did:web cannot be resolved, or does not list public_key under authentication',
    )
}

/**
 * Checks that a DID belongs to its key. A did:parley or did:bindu ends in an id derived from the first key, and a did:key
 * contains the key. Other methods are refused, because their ownership cannot be proven.
 */
function checkDid(id: unknown, key: unknown, first: unknown): void {
  if (typeof id !== 'string' || !id.startsWith('did:')) return
  const [, method, ...rest] = id.split(':')
  if (method === didMethod || method === 'bindu') {
    const bytes = typeof first === 'string' ? readPublicKey(first) : undefined
    if (bytes === undefined || rest.length !== 3 || keyId(bytes) !== rest.at(-1))
      refuse('client_id is not the DID of public_key, nor of the first key of key_history')
  } else if (method === 'key') {
    const bytes = typeof key === 'string' ? readPublicKey(key) : undefined
    if (bytes === undefined || rest.join(':') !== didKeyId(bytes))
      refuse('client_id is not the DID of public_key')
  } else if (method !== 'web')
    refuse(`client_id can be a DID of did:${didMethod}, did:key, did:web or did:bindu`)
}

/** Returns the id of an Ed25519 did:key: the multicodec prefix 0xed01 and the key in base58 (`z`). */
function didKeyId(key: Uint8Array): string {
  return `z${bs58.encode(Buffer.concat([Buffer.of(0xed, 0x01), key]))}`
}

function refuse(description: string): never {
  throw new errors.InvalidClientMetadata(description)
}
