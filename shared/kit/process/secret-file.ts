import { open } from 'node:fs/promises'

/** A secret file that other users of the machine may read or change. The message contains the command to fix it. */
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
  const { mode, uid } = await handle.stat()
  const forbiddenBits = uid === process.getuid?.() ? groupBits | othersBits : othersBits
  // On Windows, every file has mode 0666.
  if (process.platform !== 'win32' && (mode & forbiddenBits) !== 0)
    throw new ExposedSecretFile(exposed(file, mode))
  return handle.readFile('utf8')
}

function exposed(file: string, mode: number): string {
  const octal = (mode & 0o777).toString(8).padStart(4, '0')
  return (
    `${file} holds a secret and is open to other users of this machine (mode ${octal}). ` +
    `Run "chmod 600 ${file}" and start again. If others may have read it, replace the secret.`
  )
}
