import { mkdir, open, rm } from 'node:fs/promises'
import path from 'node:path'
import { CommandFailed } from './faults.ts'

const nameMaxBytes = 200
const attemptsMax = 1000

/**
 * Saves a file received from an agent under the last component of its name. Never overwrites a file (`name-1.ext`
 * instead), writes outside the folder or creates a hidden file.
 * @returns the path of the file
 */
export async function saveFile(folder: string, name: string | undefined, bytes: Uint8Array): Promise<string> {
  const { base, extension } = split(safeName(name))
  await mkdir(folder, { recursive: true }).catch((thrown: NodeJS.ErrnoException) => {
    throw new CommandFailed(`${folder} cannot be made (${thrown.code}).`)
  })
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const target = path.join(folder, attempt === 0 ? base + extension : `${base}-${attempt}${extension}`)
    if (await writeNew(target, bytes)) return target
  }
  throw new CommandFailed(`${folder} holds too many files named like ${base}${extension}.`)
}

/** Returns false if the name exists, even as a dangling link, because `wx` does not follow links. */
async function writeNew(target: string, bytes: Uint8Array): Promise<boolean> {
  const handle = await open(target, 'wx').catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'EEXIST') return undefined
    throw new CommandFailed(`${target} cannot be written (${thrown.code}).`)
  })
  if (handle === undefined) return false
  try {
    await handle.writeFile(bytes)
  } catch (thrown) {
    await rm(target, { force: true })
    throw new CommandFailed(`${target} cannot be written (${(thrown as NodeJS.ErrnoException).code}).`)
  } finally {
    await handle.close()
  }
  return true
}

// Matches device names on Windows with any extension.
const reserved = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i
// oxlint-disable-next-line no-control-regex -- the expression removes control and direction characters
const unwanted = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

/** Turns any text into a plain file name of at most 200 bytes. */
export function safeName(name: string | undefined): string {
  const last = (name ?? '').toWellFormed().split(/[/\\]/).at(-1) ?? ''
  const plain = last
    .normalize('NFC')
    .replaceAll(unwanted, '')
    .replaceAll(/[<>:"|?*]/g, '_')
    .replace(/^[\s.~-]+/, '')
    .replace(/[\s.]+$/, '')
  if (plain === '') return 'file'
  return shortened(reserved.test(plain) ? `_${plain}` : plain)
}

function shortened(name: string): string {
  const { base, extension } = split(name)
  const letters = Array.from(base).slice(0, nameMaxBytes)
  while (Buffer.byteLength(letters.join('') + extension) > nameMaxBytes) letters.pop()
  return letters.join('') + extension
}

/** Splits off the extension. A long suffix counts as part of the name. */
function split(name: string): { base: string; extension: string } {
  const extension = path.extname(name)
  if (extension.length > 16 || extension === '.' || Buffer.byteLength(extension) > 64)
    return { base: name, extension: '' }
  return { base: name.slice(0, name.length - extension.length), extension }
}
