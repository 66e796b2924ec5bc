import { randomBytes } from 'node:crypto'
import { cardKeyId } from '@parley/kit/did/card-key'
import {
  type GatewayIdentitySettings,
  gatewayIdentity,
  type Identity,
  withCardKeys,
} from '@parley/kit/did/identity'
import { type KeyHistory, signNextKey } from '@parley/kit/did/key-link'
import { writeKeyList } from '@parley/kit/did/key-list'
import { keyPairFromSeed, seedBytes } from '@parley/kit/did/keys'
import { CommandFailed } from '../terminal/faults.ts'

/** Gateway settings by name, with their new values. */
export type ChangedSettings = { SERVICE_GATEWAY_DID_SEED?: string; SERVICE_GATEWAY_DID_KEYS: string }

/** Adds a new key signed by the current key, which remains listed until it is retired. */
export function nextGatewayKey(settings: GatewayIdentitySettings): ChangedSettings {
  const { key, history } = newest(settings)
  const seed = randomBytes(seedBytes)
  const pair = keyPairFromSeed(seed)
  const next = pair.publicKeyBase58
  const all: KeyHistory = [...history, { publicKeyBase58: next, signature: signNextKey(key, next) }]
  // Each replica has one of the seeds, and all of them list the keys of both.
  const listed = settings.cardEs256 ? withCardKeys(all, [key, pair]) : all
  return {
    SERVICE_GATEWAY_DID_SEED: seed.toString('base64'),
    SERVICE_GATEWAY_DID_KEYS: writeKeyList(listed),
  }
}

/** Retires all keys except the signing key. Their earlier signatures can no longer be verified. */
export function retireGatewayKeys(settings: GatewayIdentitySettings): ChangedSettings {
  const { key, history } = newest(settings)
  const retired = history.map((one) =>
    one.publicKeyBase58 === key.publicKeyBase58 ? one : { ...one, retired: true as const },
  )
  return { SERVICE_GATEWAY_DID_KEYS: writeKeyList(retired as KeyHistory) }
}

/** @throws CommandFailed unless the seed belongs to the newest key, which must sign the next key */
function newest(settings: GatewayIdentitySettings) {
  const { key } = gatewayIdentity(settings)
  const history: KeyHistory = settings.history ?? [{ publicKeyBase58: key.publicKeyBase58 }]
  if (history.at(-1)?.publicKeyBase58 === key.publicKeyBase58) return { key, history }
  throw new CommandFailed(
    'SERVICE_GATEWAY_DID_KEYS already names a newer key: set SERVICE_GATEWAY_DID_SEED to its seed first.',
  )
}

/** The keys of a document with their status for display: signing, listed or retired, and whether cards have ES256 signatures. */
export function keysOf({ document, key }: Identity) {
  const listed = document.assertionMethod ?? []
  const cardKeys = new Set(listed.map((one) => (typeof one === 'string' ? one : one.id)))
  const history: { id: string; publicKeyBase58: string; retired?: true }[] =
    document.keyHistory ?? document.authentication
  return history.map(({ id, publicKeyBase58, retired }) => ({
    id: id.slice(id.indexOf('#') + 1),
    key: publicKeyBase58,
    state: retired ? 'retired' : publicKeyBase58 === key.publicKeyBase58 ? 'signs' : 'listed',
    ...(cardKeys.has(cardKeyId(id)) && { es256: true }),
  }))
}
