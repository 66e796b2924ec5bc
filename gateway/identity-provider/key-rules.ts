import bs58 from 'bs58'
import { type ClientMetadata, errors } from 'oidc-provider'
import { z } from 'zod'
import { readPublicKey } from '../../shared/auth/client-keys.ts'
import { didMethod, keyId } from '../../shared/identity/did.ts'
import { isLinked } from '../../shared/identity/key-link.ts'

const keysMax = 100
const text = z.string().max(128)
/** As `keyHistory` of a DID document. */
const keyHistory = z
  .array(z.object({ publicKeyBase58: text, signature: text.exactOptional() }))
  .min(1)
  .max(keysMax)

/**
 * Holds for clients that register or update themselves: a DID as client id is only for its key, and a key gives way to
 * another only when it signed for it (`key_history`). `known`: the key that the client has so far.
 * @throws InvalidClientMetadata
 */
export function checkKeys(metadata: ClientMetadata, known: unknown): void {
  const key = metadata['public_key']
  const history = historyOf(metadata)
  checkDid(metadata.client_id, key, history[0])
  if (typeof known !== 'string' || key === known) return
  // Also with the signature of an older one it does not go back: that one may have been retired because it leaked.
  if (key === undefined || !history.slice(0, -1).includes(known))
    refuse('another public_key needs a key_history in which the present one signs for it')
}

/** The keys so far, oldest first; the last one is `public_key`. */
function historyOf(metadata: ClientMetadata): unknown[] {
  if (metadata['key_history'] === undefined) return [metadata['public_key']]
  const history = keyHistory.safeParse(metadata['key_history']).data as
    | { publicKeyBase58: string; signature?: string }[]
    | undefined
  if (
    history === undefined ||
    history.at(-1)?.publicKeyBase58 !== metadata['public_key'] ||
    !isLinked(history)
  )
    refuse('key_history must lead to public_key, each key but the first signed by the one before it')
  return history.map(({ publicKeyBase58 }) => publicKeyBase58)
}

/** Methods whose DIDs are not made of a key prove nothing here: whoever has one gets another id. */
function checkDid(id: unknown, key: unknown, first: unknown): void {
  if (typeof id !== 'string' || !id.startsWith('did:')) return
  const [, method, ...rest] = id.split(':')
  if (method === didMethod) {
    const bytes = typeof first === 'string' ? readPublicKey(first) : undefined
    if (bytes === undefined || keyId(bytes) !== rest.at(-1))
      refuse('client_id is not the DID of public_key, nor of the first key of key_history')
  } else if (method === 'key') {
    const bytes = typeof key === 'string' ? readPublicKey(key) : undefined
    if (bytes === undefined || rest.join(':') !== didKeyId(bytes))
      refuse('client_id is not the DID of public_key')
  } else refuse(`client_id can be a DID of did:${didMethod} or did:key alone`)
}

/** did:key of an Ed25519 key: base58 (`z`) behind the multicodec prefix 0xed01. */
function didKeyId(key: Uint8Array): string {
  return `z${bs58.encode(Buffer.concat([Buffer.of(0xed, 0x01), key]))}`
}

function refuse(description: string): never {
  throw new errors.InvalidClientMetadata(description)
}
