import { type AllowedHosts, noExceptions } from '@parley/kit/net/allowed-hosts'
import { OutgoingFailed, OutgoingRefused } from '@parley/kit/net/outgoing-errors'
import { guardedFetch } from '@parley/kit/net/pinned-fetch'
import type { Part } from '@parley/wire/model/task'
import type { FetchedFile } from '../../author/build-context.ts'

export interface FileFetching {
  /** For all files together. */
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

/** File parts that may name a `uri`. */
export interface PartsWithFiles {
  /** Of the newest message: each must be had. */
  newest: readonly Part[]
  /** Of those before it, the newest first: what can still be had within the same bounds; the rest is left out. */
  earlier: readonly Part[]
}

/**
 * The contents of the file parts that name a `uri`, one after another, through the private-address guard.
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
  const fetchOne = async ({ part, uri }: Named, place: number) => {
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

interface Named {
  part: Part
  uri: string
}

function uriOf(part: Part): Named[] {
  return part.kind === 'file' && part.file.uri !== undefined ? [{ part, uri: part.file.uri }] : []
}

/** It was there when its message came; whether the handler still wants it is not known. */
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
    const which = `File ${place} of those named by uri could not be fetched: ${error.message}.`
    throw new FileNotFetchedError(which, error instanceof OutgoingRefused)
  }
}
