import { type AllowedHosts, noExceptions } from '@parley/kit/net/allowed-hosts'
import { OutgoingFailed, OutgoingRefused } from '@parley/kit/net/outgoing-errors'
import { guardedFetch } from '@parley/kit/net/pinned-fetch'
import type { Part } from '@parley/wire/model/task'
import type { FetchedFile } from '../../author/build-context.ts'

export interface FileFetching {
  /** The total size limit for the files of a message. */
  maxBytes: number
  /** The total time limit for all files. Default 30 s. */
  timeoutMs?: number
  /** FILE_ALLOWED_HOSTS, the exceptions to the private-address guard. Default: none. */
  allowed?: AllowedHosts | undefined
}

const urisMax = 16

/** A file could not be fetched. If `refused`, its address is not allowed or there are too many files; else the host failed. */
export class FileNotFetchedError extends Error {
  override readonly name = 'FileNotFetchedError'
  readonly refused: boolean
  constructor(message: string, refused: boolean) {
    super(message)
    this.refused = refused
  }
}

/** Parts that may have a `uri`. */
export interface PartsWithFiles {
  /** Parts of the newest message. Every file must be fetched. */
  newest: readonly Part[]
  /** Parts of earlier messages, newest first. Files that exceed the same limits are left out. */
  earlier: readonly Part[]
}

/**
 * Fetches the file parts that have a `uri` (spec/messages-and-artifacts.md#files-by-uri), one by one. Private addresses are
 * refused.
 * @throws FileNotFetchedError
 */
export async function fetchFiles(
  { newest, earlier }: PartsWithFiles,
  limits: FileFetching,
  signal: AbortSignal,
): Promise<Map<Part, FetchedFile>> {
  const named = newest.flatMap(uriOf)
  if (named.length > urisMax)
    throw new FileNotFetchedError(`A message may name at most ${urisMax} files by uri.`, true)
  const fetched = new Map<Part, FetchedFile>()
  const until = performance.now() + (limits.timeoutMs ?? 30_000)
  let maxBytes = limits.maxBytes
  const fetchOne = async ({ part, uri }: UriPart, place: number) => {
    const timeoutMs = Math.max(1, Math.round(until - performance.now()))
    const options = { maxBytes, timeoutMs, signal, allowed: limits.allowed ?? noExceptions }
    const file = await fetchFile(uri, place, options)
    maxBytes -= file.bytes.byteLength
    fetched.set(part, file)
  }
  for (const [index, one] of named.entries()) await fetchOne(one, index + 1)
  for (const one of earlier.flatMap(uriOf).slice(0, urisMax - named.length)) {
    if (maxBytes <= 0 || performance.now() >= until) break
    await fetchOne(one, 0).catch(unlessNotFetched)
  }
  return fetched
}

interface UriPart {
  part: Part
  uri: string
}

function uriOf(part: Part): UriPart[] {
  return part.kind === 'file' && part.file.uri !== undefined ? [{ part, uri: part.file.uri }] : []
}

/** A file of an earlier message may no longer be available; the handler then runs without it. */
function unlessNotFetched(error: unknown): void {
  if (!(error instanceof FileNotFetchedError)) throw error
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
    const which = `File ${place} of the files named by uri could not be fetched: ${error.message}.`
    throw new FileNotFetchedError(which, error instanceof OutgoingRefused)
  }
}
