import { randomBytes } from 'node:crypto'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'
import {
  createSecretFile,
  readSecretFile,
  readSecretFileIfExists,
  replaceSecretFile,
} from '../process/secret-file.ts'
import { type KeyEntry, type KeyHistory, signNextKey } from './key-link.ts'
import { type KeyPair, keyPairFromSeed, seedBytes } from './keys.ts'

/** The keys of an agent. */
export interface KeyRing {
  /** The newest key, which signs. */
  key: KeyPair
  /** All key pairs that are not retired. */
  pairs: readonly KeyPair[]
  history: KeyHistory
}

const linked = { type: z.literal('Ed25519'), signature: z.string().optional() }
/** The seed of a retired key is deleted. */
const retiredKey = z.object({ ...linked, retired: z.literal(true), public_key: z.string() })
const usedKey = z.object({ ...linked, seed: z.string() })
const keyFile = z.object({ keys: z.array(z.union([retiredKey, usedKey])).min(1) })
type StoredKeys = z.infer<typeof keyFile>['keys']

/**
 * Reads the key file, or creates it with a new key (mode 0600).
 * @throws ExposedSecretFile if other users may read the file
 */
export async function loadOrCreateKeys(file: string): Promise<KeyRing> {
  const text = (await readSecretFileIfExists(file)) ?? (await createKeyFile(file))
  return ringOf(file, storedKeys(file, text))
}

/** Adds a new key, signed by the current one, which remains listed until it is retired. */
export async function rotateKeys(file: string): Promise<KeyRing> {
  const stored = storedKeys(file, await readSecretFile(file))
  const seed = randomBytes(seedBytes)
  const signature = signNextKey(ringOf(file, stored).key, keyPairFromSeed(seed).publicKeyBase58)
  return replaceKeyFile(file, [...stored, { type: 'Ed25519', seed: seed.toString('base64url'), signature }])
}

/** Retires all keys except the newest and deletes their seeds. Their signatures can no longer be verified. */
export async function retireOldKeys(file: string): Promise<KeyRing> {
  const stored = storedKeys(file, await readSecretFile(file))
  const { history } = ringOf(file, stored)
  const retired = stored.map((one, i): StoredKeys[number] => {
    const { type, signature } = one
    const key = history[i]
    if (key === undefined || i === stored.length - 1) return one
    return {
      type,
      retired: true,
      public_key: key.publicKeyBase58,
      ...(signature !== undefined && { signature }),
    }
  })
  return replaceKeyFile(file, retired)
}

/** @throws Error; its message contains no part of the file */
function ringOf(file: string, stored: StoredKeys): KeyRing {
  const keys = stored.map((one) => {
    const signature = one.signature === undefined ? {} : { signature: one.signature }
    if (!('seed' in one)) {
      const entry: KeyEntry = { publicKeyBase58: one.public_key, ...signature, retired: true }
      return { entry, pair: undefined }
    }
    const pair = keyPairFromSeed(Buffer.from(one.seed, 'base64url'))
    const entry: KeyEntry = { publicKeyBase58: pair.publicKeyBase58, ...signature }
    return { entry, pair }
  })
  const key = keys.at(-1)?.pair
  const [first, ...later] = keys.map(({ entry }) => entry)
  if (key === undefined || first === undefined) throw new Error(`${file} contains no signing key.`)
  return { key, pairs: keys.flatMap(({ pair }) => pair ?? []), history: [first, ...later] }
}

function storedKeys(file: string, text: string): StoredKeys {
  const parsed = keyFile.safeParse(jsonOf(text))
  if (!parsed.success) throw new Error(`${file} is not a key file.`)
  return parsed.data.keys
}

function createKeyFile(file: string): Promise<string> {
  const seed = randomBytes(seedBytes).toString('base64url')
  return createSecretFile(file, textOf([{ type: 'Ed25519', seed }]))
}

async function replaceKeyFile(file: string, stored: StoredKeys): Promise<KeyRing> {
  await replaceSecretFile(file, textOf(stored))
  return ringOf(file, stored)
}

const textOf = (keys: StoredKeys) => `${JSON.stringify({ keys })}\n`
