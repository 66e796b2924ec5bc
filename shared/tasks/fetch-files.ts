import type { FetchedFile } from '../handler/build-context.ts'
import { type AllowedHosts, noExceptions } from '../net/allowed-hosts.ts'
import { OutgoingFailed, OutgoingRefused } from '../net/outgoing-errors.ts'
import { guardedFetch } from '../net/pinned-fetch.ts'
import type { Part } from '../protocol/task.ts'

export interface FileFetching {
  /** For all files of a message together. */
  maxBytes: number
  /** For all of them together. Default 30 s. */
  timeoutMs?: number
  /** Exceptions to the private-address guard: FILE_ALLOWED_HOSTS. Default none. */
  allowed?: AllowedHosts | undefined
}

const urisMax = 16

/** A file cannot be had. `refused`: the caller asked for what is not allowed; else the other side failed. */
export class FileNotFetchedError extends Error {
  override readonly name = 'FileNotFetchedError'
  readonly refused: boolean
  constructor(message: string, refused: boolean) {
    super(message)
    this.refused = refused
  }
}

/**
 * The contents of the file parts that name a `uri`, one after another, through the private-address guard.
 * @throws FileNotFetchedError
 */
export async function fetchFiles(
  parts: readonly Part[],
  limits: FileFetching,
  signal: AbortSignal,
): Promise<Map<Part, FetchedFile>> {
  const named = parts.filter((part) => part.kind === 'file' && part.file.uri !== undefined)
  if (named.length > urisMax)
    throw new FileNotFetchedError(`A message may name at most ${urisMax} files by uri.`, true)
  const fetched = new Map<Part, FetchedFile>()
  const until = performance.now() + (limits.timeoutMs ?? 30_000)
  let maxBytes = limits.maxBytes
  for (const [index, part] of named.entries()) {
    if (part.kind !== 'file' || part.file.uri === undefined) continue
    const timeoutMs = Math.max(1, Math.round(until - performance.now()))
    const options = { maxBytes, timeoutMs, signal, allowed: limits.allowed ?? noExceptions }
    const file = await fetchFile(part.file.uri, index + 1, options)
    maxBytes -= file.bytes.byteLength
    fetched.set(part, file)
  }
  return fetched
}

async function fetchFile(
  uri: string,
  place: number,
  options: { maxBytes: number; timeoutMs: number; signal: AbortSignal; allowed: AllowedHosts },
): Promise<FetchedFile> {
  try {
    const { status, headers, body } = await guardedFetch(uri, options)
    if (status !== 200) throw new OutgoingFailed('protocol', `The host answered ${status}`)
    return { bytes: body, mimeType: headers['content-type'] }
  } catch (error) {
    if (!(error instanceof OutgoingFailed || error instanceof OutgoingRefused)) throw error
    const which = `File ${place} of those named by uri could not be fetched: ${error.message}.`
    throw new FileNotFetchedError(which, error instanceof OutgoingRefused)
  }
}
