import { open } from 'node:fs/promises'

/** A file with a secret that other users of the machine may read or change. The message says what to do. */
export class ExposedSecretFile extends Error {
  override readonly name = 'ExposedSecretFile'
}

const groupBits = 0o070
const othersBits = 0o007

/**
 * The text of a file that holds a key or another secret. As OpenSSH does, it refuses one that others may read or change:
 * closing it silently would hide that the secret may be known. A file of another user, which is how secrets are mounted
 * into containers, may be readable by its group.
 * @throws ExposedSecretFile; NodeJS.ErrnoException when it is missing or cannot be read
 */
export async function readSecretFile(file: string): Promise<string> {
  await using handle = await open(file, 'r')
  const { mode, uid } = await handle.stat()
  const refused = uid === process.getuid?.() ? groupBits | othersBits : othersBits
  // Windows has no such modes: every file appears as 0666 there.
  if (process.platform !== 'win32' && (mode & refused) !== 0) throw new ExposedSecretFile(exposed(file, mode))
  return handle.readFile('utf8')
}

function exposed(file: string, mode: number): string {
  const octal = (mode & 0o777).toString(8).padStart(4, '0')
  return (
    `${file} holds a secret and is open to other users of this machine (mode ${octal}). ` +
    `Run "chmod 600 ${file}" and start again. If others may have read it, replace the secret.`
  )
}
