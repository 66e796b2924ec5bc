import path from 'node:path'
import type { DocumentDatabase } from '@parley/kit/database/documents'
import type { Log } from '@parley/kit/process/log'
import { hasKeyRing, KeyRing, type RecordCipher } from './key-ring.ts'
import {
  createMasterKey,
  createNextMasterKey,
  KeysRefused,
  loadMasterKeys,
  type MasterKeySettings,
  type MasterKeys,
  masterKeyFile,
  replaceMasterKeyFile,
} from './master-key.ts'
import { encryptedFiles, SecretFiles } from './secret-files.ts'

export interface KeysOptions {
  dataDir: string
  settings: MasterKeySettings
  /** The database of the records and the key ring. */
  documents: DocumentDatabase
  /** Overwrites data that was removed from an embedded database file. */
  eraseFreed?: () => Promise<void>
  log: Log
}

/** The keys that encrypt the gateway's secrets. */
export class GatewayKeys {
  readonly documents: DocumentDatabase
  /** The encrypted files of DATA_DIR/oauth. */
  readonly files: SecretFiles
  readonly cipher: RecordCipher
  readonly #eraseFreed: KeysOptions['eraseFreed']
  #masters: MasterKeys
  #ring: Promise<KeyRing> | undefined
  #opened: KeyRing | undefined

  private constructor(options: KeysOptions, masters: MasterKeys) {
    this.documents = options.documents
    this.#eraseFreed = options.eraseFreed
    this.#masters = masters
    this.files = new SecretFiles(path.join(options.dataDir, 'oauth'), masters)
    // Each record that is read or written passes here, so an open ring is used without waiting for a promise.
    const withRing = <T>(run: (ring: KeyRing) => Promise<T>) =>
      this.#opened === undefined ? this.ring().then(run) : run(this.#opened)
    this.cipher = {
      seal: (text, context) => withRing((ring) => ring.seal(text, context)),
      open: (stored, context, kind) => withRing((ring) => ring.open(stored, context, kind)),
      hash: (purpose, value) => withRing((ring) => ring.hash(purpose, value)),
      acceptsPlaintext: () => withRing((ring) => ring.acceptsPlaintext()),
    }
  }

  /**
   * Loads the master key, or creates its file if nothing is encrypted yet, and opens the key ring. Completes a
   * replacement of the master key that was interrupted.
   * @throws KeysRefused if the encrypted data cannot be used, which then stays unchanged; ExposedSecretFile
   */
  static async open(options: KeysOptions): Promise<GatewayKeys> {
    const { dataDir, settings, documents } = options
    const masters = (await loadMasterKeys(dataDir, settings)) ?? (await firstMasterKey(options))
    const keys = new GatewayKeys(options, masters)
    // Without the embedded OAuth server, a gateway stores no such records, and its ring is created when first used.
    const ring = (await hasKeyRing(documents)) ? await keys.ring() : undefined
    const { file, previous } = masters
    const inProgress = previous !== undefined || (ring?.masterIds.length ?? 1) > 1
    await keys.files.useMasters(masters, !inProgress)
    if (inProgress && file !== undefined && !documents.shared) await keys.#completeFile(file)
    return keys
  }

  ring(): Promise<KeyRing> {
    this.#ring ??= KeyRing.open(this.documents, this.#masters).then(
      (ring) => {
        this.#opened = ring
        return ring
      },
      (error: unknown) => {
        this.#ring = undefined
        throw error
      },
    )
    return this.#ring
  }

  /**
   * Derives a key from one that the database contains in plaintext, so that a copy of the database does not reveal it.
   * All gateways on the database derive the same key. With another OAuth server, gateways on a shared database may have
   * master keys of their machines; the result is then the stored key, until PARLEY_MASTER_KEY is set.
   */
  async secretKey(storeKey: Uint8Array): Promise<Uint8Array> {
    const { documents, masters } = this
    const isShared = documents.shared && masters.file !== undefined && !(await hasKeyRing(documents))
    if (isShared) return storeKey
    const ring = await this.ring()
    return Buffer.from(
      await ring.hash('secret key', Buffer.from(storeKey).toString('base64url')),
      'base64url',
    )
  }

  /** Removes the remains of plaintext records from the database file. A failure leaves the file unchanged. */
  async eraseFreed(log: Log): Promise<void> {
    await this.#eraseFreed?.().catch((error: unknown) => {
      log.warn(
        { err: error },
        'remains of plaintext records could not be removed from the database file: run VACUUM on it when the gateway is stopped',
      )
    })
  }

  get masters(): MasterKeys {
    return this.#masters
  }

  /**
   * Replaces the master key by a new one if it is in a file. If it is in PARLEY_MASTER_KEY, completes the replacement
   * of the one in PARLEY_MASTER_KEY_PREVIOUS.
   * @returns false if the operator has to provide the new key first
   */
  async replaceMaster(): Promise<boolean> {
    const { file } = this.#masters
    if (file === undefined) {
      if (this.#masters.previous === undefined) return false
      await this.#dropPrevious()
      return true
    }
    // Other gateways on the database have a copy of the file, which this one cannot replace.
    if (this.documents.shared) return false
    const next = await createNextMasterKey(file)
    await this.#use({ current: next, previous: this.#masters.current, source: file, file })
    await this.#completeFile(file)
    return true
  }

  async #use(masters: MasterKeys): Promise<void> {
    this.#masters = masters
    if (await hasKeyRing(this.documents)) await (await this.ring()).useMasters(masters)
    await this.files.useMasters(masters, false)
  }

  /** After the file contains the next key, the earlier one is no longer needed. */
  async #completeFile(file: string): Promise<void> {
    if (this.#masters.previous !== undefined) await replaceMasterKeyFile(file)
    await this.#dropPrevious()
  }

  async #dropPrevious(): Promise<void> {
    const { previous: _previous, ...masters } = this.#masters
    if (await hasKeyRing(this.documents)) await (await this.ring()).dropOtherMasters()
    await this.files.useMasters(masters, true)
    this.#masters = masters
  }
}

async function firstMasterKey({ dataDir, settings, documents, log }: KeysOptions): Promise<MasterKeys> {
  const file = masterKeyFile(dataDir)
  const isEncrypted =
    (await hasKeyRing(documents)) || (await encryptedFiles(path.join(dataDir, 'oauth'))).length > 0
  if (isEncrypted) {
    // Another gateway with the same DATA_DIR may have created the file since it was read.
    const created = await loadMasterKeys(dataDir, settings)
    if (created !== undefined) return created
    throw new KeysRefused(
      `The stored secrets are encrypted, but there is no master key: PARLEY_MASTER_KEY is not set, and ${file} does not exist. Nothing was changed. Restore ${file} from its backup, or set PARLEY_MASTER_KEY; all gateways on one database use the same key.`,
    )
  }
  const masters = await createMasterKey(dataDir)
  log.info(
    { file },
    'created the master key, which encrypts the stored secrets: back it up separately from the data, because the data cannot be decrypted without it',
  )
  return masters
}
