import { open } from 'node:fs/promises'
import path from 'node:path'
import type { WirePart } from '@parley/wire/codecs/parley/shapes'
import { UsageError } from '../terminal/faults.ts'

/** A message is limited to 10 MiB on the wire, and base64 needs four characters for three bytes. */
const allFilesMaxBytes = 7 * 1024 * 1024

const mimeTypes: Record<string, string> = {
  '.csv': 'text/csv',
  '.gif': 'image/gif',
  '.htm': 'text/html',
  '.html': 'text/html',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.tsv': 'text/tab-separated-values',
  '.txt': 'text/plain',
  '.webp': 'image/webp',
  '.xlsx': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  '.xml': 'application/xml',
  '.yaml': 'application/yaml',
  '.yml': 'application/yaml',
  '.zip': 'application/zip',
}

export function mimeTypeOf(name: string): string {
  return mimeTypes[path.extname(name).toLowerCase()] ?? 'application/octet-stream'
}

/** Reads local files into message parts. @throws UsageError if a file cannot be read or the total is too large */
export async function fileParts(paths: string[], cwd: string): Promise<WirePart[]> {
  const parts: WirePart[] = []
  let left = allFilesMaxBytes
  for (const given of paths) {
    const bytes = await readBounded(path.resolve(cwd, given), given, left)
    left -= bytes.length
    const name = path.basename(given)
    const file = { name, mimeType: mimeTypeOf(name), bytes: bytes.toString('base64') }
    parts.push({ kind: 'file', file })
  }
  return parts
}

async function readBounded(file: string, shown: string, maxBytes: number): Promise<Buffer> {
  try {
    await using handle = await open(file)
    const stat = await handle.stat()
    if (!stat.isFile()) throw new UsageError(`${shown} is not a file.`)
    if (stat.size > maxBytes) {
      throw new UsageError(
        `${shown} has ${megabytes(stat.size)}; the files of one message are limited to ${megabytes(allFilesMaxBytes)} in total.`,
      )
    }
    return await handle.readFile()
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown
    const { code } = thrown as NodeJS.ErrnoException
    throw new UsageError(`${shown} ${code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`}.`)
  }
}

const megabytes = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`
