import { randomBytes } from 'node:crypto'
import { rename } from 'node:fs/promises'
import path from 'node:path'
import { bytesOf, createSecretFile, readSecretFileIfExists } from '@parley/kit/process/secret-file'
import { CipherKey, derivedBytes, keyBytes } from './cipher-key.ts'

/** The encrypted data cannot be used with the keys at hand. `message` contains what the operator can do. */
export class KeysRefused extends Error {
  override readonly name = 'KeysRefused'
}

/** The key that encrypts the data keys and the secret files. Only keys that are derived from it are kept in memory. */
export class MasterKey {
  /** Identifies the key without revealing it. */
  readonly id: string
  readonly ringKey: CipherKey
  readonly fileKey: CipherKey

  /** @param bytes 32 bytes */
  constructor(bytes: Uint8Array) {
    this.id = derivedBytes(bytes, 'parley master key id').toString('hex', 0, 6)
    this.ringKey = new CipherKey(derivedBytes(bytes, 'parley key ring'))
    this.fileKey = new CipherKey(derivedBytes(bytes, 'parley secret files'))
  }
}

/** The master keys that a gateway can use. */
export interface MasterKeys {
  current: MasterKey
  /** The key that `current` replaces, until the replacement is complete. */
  previous?: MasterKey
  /** Where `current` comes from, for messages to the operator. */
  source: string
  /** The file of the key, or undefined if the key is in PARLEY_MASTER_KEY. */
  file?: string
}

/** The values of PARLEY_MASTER_KEY and PARLEY_MASTER_KEY_PREVIOUS, decoded. */
export interface MasterKeySettings {
  current: Uint8Array | undefined
  previous: Uint8Array | undefined
}

export const masterKeyFile = (dataDir: string) => path.join(dataDir, 'master.key')
const nextFile = (file: string) => `${file}.next`

/**
 * Loads the master key from the settings or from its file. Returns undefined if there is neither.
 * @throws KeysRefused for a damaged file, ExposedSecretFile for a file that other users can read
 */
export async function loadMasterKeys(
  dataDir: string,
  settings: MasterKeySettings,
): Promise<MasterKeys | undefined> {
  const { current, previous } = settings
  if (current !== undefined) {
    return {
      current: new MasterKey(current),
      ...(previous !== undefined && { previous: new MasterKey(previous) }),
      source: 'PARLEY_MASTER_KEY',
    }
  }
  const file = masterKeyFile(dataDir)
  const text = await readSecretFileIfExists(file)
  if (text === undefined) return undefined
  // This file exists only during a replacement, which may have been interrupted.
  const next = await readSecretFileIfExists(nextFile(file))
  const key = masterKeyOf(file, text)
  if (next === undefined) return { current: key, source: file, file }
  return { current: masterKeyOf(nextFile(file), next), previous: key, source: file, file }
}

/** Creates the file of a new master key, unless another process creates it first. */
export async function createMasterKey(dataDir: string): Promise<MasterKeys> {
  const file = masterKeyFile(dataDir)
  return { current: masterKeyOf(file, await createSecretFile(file, newKeyText())), source: file, file }
}

/** Creates the key that will replace the one in the file, or reads the key of an interrupted replacement. */
export async function createNextMasterKey(file: string): Promise<MasterKey> {
  return masterKeyOf(nextFile(file), await createSecretFile(nextFile(file), newKeyText()))
}

/** Replaces the key in the file by the next one, atomically. */
export async function replaceMasterKeyFile(file: string): Promise<void> {
  await rename(nextFile(file), file)
}

const newKeyText = () => `${randomBytes(keyBytes).toString('base64')}\n`

function masterKeyOf(file: string, text: string): MasterKey {
  const bytes = bytesOf(text, keyBytes)
  if (bytes !== undefined) return new MasterKey(bytes)
  throw new KeysRefused(
    `${file} is damaged: a master key is base64 of exactly 32 bytes. Restore the file from its backup. Do not delete it: the stored OAuth clients and keys are encrypted with this key.`,
  )
}
