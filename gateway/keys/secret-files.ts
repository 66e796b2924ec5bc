import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { errorCode } from '@parley/kit/net/error-code'
import {
  createSecretFile,
  readSecretFile,
  readSecretFileIfExists,
  replaceSecretFile,
} from '@parley/kit/process/secret-file'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'
import { wrongMasterKey } from './key-ring.ts'
import { KeysRefused, type MasterKeys } from './master-key.ts'

const sealedFile = z.object({
  parley: z.literal('encrypted file'),
  format: z.literal(1),
  /** The encrypted content, by the id of the master key. There are two while the master key is being replaced. */
  copies: z.record(z.string(), z.string()),
})

/** Files of a folder that are encrypted with the master key (mode 0600). */
export class SecretFiles {
  readonly dir: string
  #masters: MasterKeys
  /** Names of plaintext files that were read before `encryptPlaintext`. */
  #plaintext: Set<string> | undefined = new Set()

  constructor(dir: string, masters: MasterKeys) {
    this.dir = dir
    this.#masters = masters
  }

  /**
   * Reads the file, or creates it. A plaintext file of an earlier version is encrypted in place, but not before
   * `encryptPlaintext` was called.
   * @param isValid checks the plaintext; a file with an invalid one is left unchanged
   * @throws KeysRefused without any part of the content, ExposedSecretFile
   */
  async loadOrCreate(
    name: string,
    { make, isValid }: { make: () => string; isValid: (text: string) => boolean },
  ): Promise<string> {
    const file = path.join(this.dir, name)
    const text =
      (await readSecretFileIfExists(file)) ??
      (await createSecretFile(file, sealedText(name, make(), this.#masters)))
    const sealed = sealedFile.safeParse(jsonOf(text))
    const plain = sealed.success ? this.#open(file, sealed.data) : text.trim()
    if (!isValid(plain)) throw damaged(file)
    if (!sealed.success) {
      if (this.#plaintext === undefined) await replaceSecretFile(file, sealedText(name, plain, this.#masters))
      else this.#plaintext.add(name)
    }
    return plain
  }

  /** Encrypts the plaintext files that were read, and from now on each one that is read. Earlier versions cannot read them. */
  async encryptPlaintext(): Promise<void> {
    const names = this.#plaintext ?? []
    this.#plaintext = undefined
    for (const name of names) {
      const file = path.join(this.dir, name)
      const text = (await readSecretFile(file)).trim()
      // Another gateway that shares the folder may have encrypted it.
      if (sealedFile.safeParse(jsonOf(text)).success) continue
      await replaceSecretFile(file, sealedText(name, text, this.#masters))
    }
  }

  /**
   * Encrypts the files with other master keys from now on.
   * @param exclusively whether copies under any other key are removed, because the replacement is complete
   * @throws KeysRefused
   */
  async useMasters(masters: MasterKeys, exclusively: boolean): Promise<void> {
    this.#masters = masters
    for (const name of await encryptedFiles(this.dir)) {
      const file = path.join(this.dir, name)
      const sealed = sealedFile.safeParse(jsonOf((await readSecretFileIfExists(file)) ?? ''))
      if (!sealed.success) continue
      const ids = Object.keys(sealed.data.copies)
      if (ids.includes(masters.current.id) && (!exclusively || ids.length === 1)) continue
      await replaceSecretFile(file, sealedText(name, this.#open(file, sealed.data), masters))
    }
  }

  #open(file: string, { copies }: z.infer<typeof sealedFile>): string {
    const { current, previous, source } = this.#masters
    for (const master of previous === undefined ? [current] : [current, previous]) {
      const copy = copies[master.id]
      if (copy === undefined) continue
      const text = master.fileKey.open(copy, contextOf(path.basename(file)))
      if (text !== undefined) return text
      throw damaged(file)
    }
    throw wrongMasterKey(file, Object.keys(copies), current.id, source)
  }
}

/** Lists the encrypted files of a folder. */
export async function encryptedFiles(dir: string): Promise<string[]> {
  const names = await readdir(dir).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  })
  const isSealed = async (name: string) =>
    sealedFile.safeParse(jsonOf((await readSecretFileIfExists(path.join(dir, name))) ?? '')).success
  const found: string[] = []
  for (const name of names.filter((one) => one.endsWith('.json'))) if (await isSealed(name)) found.push(name)
  return found
}

const damaged = (file: string) =>
  new KeysRefused(`${file} is damaged. Nothing was changed. Restore it from a backup.`)

const contextOf = (name: string) => `parley file ${name}`

function sealedText(name: string, text: string, { current, previous }: MasterKeys): string {
  const masters = previous === undefined ? [current] : [current, previous]
  const copies = masters.map(({ id, fileKey }) => [id, fileKey.seal(text, contextOf(name))])
  return `${JSON.stringify({ parley: 'encrypted file', format: 1, copies: Object.fromEntries(copies) })}\n`
}
