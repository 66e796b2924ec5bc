import { randomUUID } from 'node:crypto'
import { link, open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { makeDurableFolder } from '../database/durable-folder.ts'
import { errorCode } from '../net/error-code.ts'

/** A secret file that other users of the machine may read or change, or a folder in its place. The message says what to do. */
export class ExposedSecretFile extends Error {
  override readonly name = 'ExposedSecretFile'
}

const groupBits = 0o070
const othersBits = 0o007

/**
 * Reads a file with a key or another secret. Like OpenSSH, it rejects a file that other users may read or change:
 * fixing the mode silently would hide that the secret may be compromised. A file owned by another user, such as a
 * secret mounted into a container, may be readable by its group.
 * @throws ExposedSecretFile; NodeJS.ErrnoException if the file is missing or unreadable
 */
export async function readSecretFile(file: string): Promise<string> {
  await using handle = await open(file, 'r')
  const stat = await handle.stat()
  const { mode, uid } = stat
  const forbiddenBits = uid === process.getuid?.() ? groupBits | othersBits : othersBits
  if (stat.isDirectory())
    throw new ExposedSecretFile(
      `${file} is a folder. Docker creates one in place of a missing file that it is to mount: remove the folder and provide the file.`,
    )
  // On Windows, every file has mode 0666.
  if (process.platform !== 'win32' && (mode & forbiddenBits) !== 0)
    throw new ExposedSecretFile(exposed(file, mode))
  return handle.readFile('utf8')
}

/** Like `readSecretFile`, but returns undefined if the file does not exist. @throws ExposedSecretFile */
export async function readSecretFileIfExists(file: string): Promise<string | undefined> {
  try {
    return await readSecretFile(file)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Creates the file with mode 0600 and returns its text. If the file already exists, even because another process is
 * creating it, nothing changes and the existing text is returned. A crash leaves no partial file.
 * @throws ExposedSecretFile
 */
export async function createSecretFile(file: string, text: string): Promise<string> {
  makeDurableFolder(path.dirname(file))
  try {
    // `link` never replaces a file, so only one of two concurrent writers creates it.
    await publish(text, file, link)
    return text
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
    return readSecretFile(file)
  }
}

/** Replaces or creates the file atomically with mode 0600, whatever the mode of an existing file. */
export async function replaceSecretFile(file: string, text: string): Promise<void> {
  await publish(text, file, rename)
}

/** Decodes a secret of this length from base64 or base64url. Returns undefined for any other text. */
export function bytesOf(text: string, length: number): Uint8Array | undefined {
  const urlSafe = text.trim().replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
  const bytes = Buffer.from(urlSafe, 'base64url')
  return bytes.byteLength === length && bytes.toString('base64url') === urlSafe ? bytes : undefined
}

/** Writes the file completely or not at all, even if the process is killed or the power fails. */
async function publish(
  text: string,
  file: string,
  place: (draft: string, file: string) => Promise<void>,
): Promise<void> {
  const draft = `${file}.${randomUUID()}`
  try {
    {
      await using handle = await open(draft, 'wx', 0o600)
      await handle.writeFile(text)
      await handle.sync()
    }
    await place(draft, file)
    await syncFolder(path.dirname(file))
  } finally {
    await rm(draft, { force: true })
  }
}

/** Makes a new directory entry durable. Windows cannot open a folder and needs no sync. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  await using handle = await open(folder, 'r')
  await handle.sync()
}

function exposed(file: string, mode: number): string {
  const octal = (mode & 0o777).toString(8).padStart(4, '0')
  return (
    `${file} holds a secret and is open to other users of this machine (mode ${octal}). ` +
    `Run "chmod 600 ${file}" and start again. If others may have read it, replace the secret.`
  )
}
