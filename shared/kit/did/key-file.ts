import { randomBytes, randomUUID } from 'node:crypto'
import { link, mkdir, open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'
import { readSecretFile } from '../process/secret-file.ts'
import { type KeyHistory, type KnownKey, signNextKey } from './key-link.ts'
import { type KeyPair, keyPairFromSeed, seedBytes } from './keys.ts'

/** The keys of an agent. */
export interface KeyRing {
  /** The newest; it signs. */
  key: KeyPair
  history: KeyHistory
}

const linked = { type: z.literal('Ed25519'), signature: z.string().optional() }
/** The seed of a retired key is forgotten. */
const retiredKey = z.object({ ...linked, retired: z.literal(true), public_key: z.string() })
const usedKey = z.object({ ...linked, seed: z.string() })
const keyFile = z.object({ keys: z.array(z.union([retiredKey, usedKey])).min(1) })
type StoredKeys = z.infer<typeof keyFile>['keys']

/**
 * The keys of the file; made with one new key (mode 0600) when the file is not there yet.
 * @throws ExposedSecretFile when others may read it
 */
export async function loadOrCreateKeys(file: string): Promise<KeyRing> {
  const text = (await readIfThere(file)) ?? (await createKeyFile(file))
  return ringOf(file, storedKeys(file, text))
}

/** Adds a new key, signed by the present one, which stays listed until it is retired. */
export async function rotateKeys(file: string): Promise<KeyRing> {
  const stored = storedKeys(file, await readSecretFile(file))
  const seed = randomBytes(seedBytes)
  const signature = signNextKey(ringOf(file, stored).key, keyPairFromSeed(seed).publicKeyBase58)
  return replaceKeyFile(file, [...stored, { type: 'Ed25519', seed: seed.toString('base64url'), signature }])
}

/** Retires every key but the newest and forgets their seeds. What was signed with them can no longer be verified. */
export async function retireOldKeys(file: string): Promise<KeyRing> {
  const stored = storedKeys(file, await readSecretFile(file))
  const { history } = ringOf(file, stored)
  const retired = stored.map(({ type, signature }, i): StoredKeys[number] => {
    const key = history[i]
    if (key === undefined || i === stored.length - 1) return stored[i] as StoredKeys[number]
    return {
      type,
      retired: true,
      public_key: key.publicKeyBase58,
      ...(signature !== undefined && { signature }),
    }
  })
  return replaceKeyFile(file, retired)
}

/** @throws Error without any of the file's text */
function ringOf(file: string, stored: StoredKeys): KeyRing {
  const pairs = stored.map((one) =>
    'seed' in one ? keyPairFromSeed(Buffer.from(one.seed, 'base64url')) : undefined,
  )
  const key = pairs.at(-1)
  if (key === undefined) throw new Error(`${file} holds no key that may sign.`)
  const history = stored.map((one, i): KnownKey => {
    const signature = one.signature === undefined ? {} : { signature: one.signature }
    if (!('seed' in one)) return { publicKeyBase58: one.public_key, ...signature, retired: true }
    return { publicKeyBase58: (pairs[i] as KeyPair).publicKeyBase58, ...signature }
  })
  return { key, history: history as KeyHistory }
}

function storedKeys(file: string, text: string): StoredKeys {
  const parsed = keyFile.safeParse(jsonOf(text))
  if (!parsed.success) throw new Error(`${file} is not a key file.`)
  return parsed.data.keys
}

async function createKeyFile(file: string): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  const seed = randomBytes(seedBytes).toString('base64url')
  const text = textOf([{ type: 'Ed25519', seed }])
  try {
    // Never over another: two processes that start together must not each make a key.
    await putWhole(text, file, link)
    return text
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return readSecretFile(file)
  }
}

async function replaceKeyFile(file: string, stored: StoredKeys): Promise<KeyRing> {
  await putWhole(textOf(stored), file, rename)
  return ringOf(file, stored)
}

/** Whole or not at all: a process may be killed here. */
async function putWhole(text: string, file: string, put: (whole: string, file: string) => Promise<void>) {
  const whole = `${file}.${randomUUID()}`
  try {
    await writeSecret(whole, text)
    await put(whole, file)
  } finally {
    await rm(whole, { force: true })
  }
}

async function writeSecret(file: string, text: string): Promise<void> {
  await using handle = await open(file, 'wx', 0o600)
  await handle.writeFile(text)
  await handle.sync()
}

const textOf = (keys: StoredKeys) => `${JSON.stringify({ keys })}\n`

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readSecretFile(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
