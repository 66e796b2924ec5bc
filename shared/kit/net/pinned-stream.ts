import type { IncomingHttpHeaders } from 'node:http'
import { noExceptions } from './allowed-hosts.ts'
import { Deadline } from './deadline.ts'
import { OutgoingFailed } from './outgoing-errors.ts'
import { type OutgoingUrl, outgoingUrl } from './outgoing-url.ts'
import type { PinnedConnections } from './pinned-connections.ts'
import { addressesOf, checkedHeaders, failureOf, type GuardedFetchOptions } from './pinned-fetch.ts'

export interface GuardedStreamOptions
  extends Pick<GuardedFetchOptions, 'method' | 'headers' | 'body' | 'allowed' | 'resolver' | 'signal'> {
  connections: PinnedConnections
  /** Time limit until the headers of the response arrive. Default 5 s. The signal also bounds the body. */
  timeoutMs?: number
  /** The longest time without data in the body. Default 60 s. */
  idleMs?: number
  /** How much of a body that is not read to its end is discarded, so that the connection can be reused. Default: nothing. */
  discarded?: { maxBytes: number; maxMs: number }
  /** How long a connection may have been idle to be used for this request. Default: as long as it is kept open. */
  idleMaxMs?: number
  /** Called before the first byte is sent. If it has not been called, the server has not received the request. */
  onSend?: () => void
}

/** A response with a body that is read while it arrives. Dispose it to release the connection. */
export interface GuardedStream extends AsyncDisposable {
  /** The status, which may be any, because redirects are not followed. */
  status: number
  headers: IncomingHttpHeaders
  /** Read it once. Its size is not limited. @throws OutgoingFailed `timeout`, `connection`, `aborted` */
  body: AsyncIterable<Buffer>
}

/**
 * Like `guardedFetch`, for responses without a known end.
 * @param url a string, or the result of `outgoingUrl` with the same exceptions
 * @throws OutgoingRefused: do not retry; OutgoingFailed: a later attempt may succeed
 */
export async function guardedStream(
  url: string | OutgoingUrl,
  options: GuardedStreamOptions,
): Promise<GuardedStream> {
  const { method = 'GET', body = null, allowed = noExceptions, resolver, signal, connections } = options
  const target = typeof url === 'string' ? outgoingUrl(url, allowed) : url
  const headers = checkedHeaders(options.headers ?? {})
  using deadline = new Deadline(options.timeoutMs ?? 5000, signal)
  const rules = { allowed, ...(resolver !== undefined && { resolver }) }
  const addresses = await addressesOf(target, rules, deadline)
  deadline.throwIfEnded()
  const { idleMaxMs } = options
  const connection =
    connections.takeIdle(target, addresses, idleMaxMs) ??
    (await connections.lease(target, addresses, deadline.signal, idleMaxMs))
  try {
    options.onSend?.()
    const request = { method, path: target.path, headers, body, signal: deadline.signal }
    const response = await connection.client.request(request)
    const encoding = response.headers['content-encoding'] ?? 'identity'
    if (String(encoding).trim().toLowerCase() !== 'identity')
      throw new OutgoingFailed(
        'encoding',
        'The response is compressed, although no compression was requested',
      )
    const reader = new BodyReader(response.body[Symbol.asyncIterator](), {
      signal,
      idleMs: options.idleMs ?? 60_000,
      discarded: options.discarded,
      close: (reusable) => connections.release(connection, reusable),
    })
    return {
      status: response.statusCode,
      headers: response.headers,
      body: reader,
      [Symbol.asyncDispose]: () => reader.close(),
    }
  } catch (error) {
    connections.release(connection, false)
    throw failureOf(deadline.signal.aborted ? deadline.signal.reason : error)
  }
}

interface Reading {
  signal: AbortSignal | undefined
  idleMs: number
  discarded: GuardedStreamOptions['discarded']
  close: (reusable: boolean) => void
}

/** Reads a body until its end, the signal, or a pause that is too long. */
class BodyReader implements AsyncIterable<Buffer> {
  readonly #chunks: AsyncIterator<Buffer>
  readonly #reading: Reading
  #isOpen = true
  /** Whether the reader has stopped before the end of the body. */
  #isEnding = false

  constructor(chunks: AsyncIterator<Buffer>, reading: Reading) {
    this.#chunks = chunks
    this.#reading = reading
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        const { done, value } = await this.#next()
        if (done === true) {
          this.#close(true)
          return
        }
        yield value
      }
    } finally {
      await this.close()
    }
  }

  /** Releases the connection, which remains open if the body has ended or the rest of it is short. */
  async close(): Promise<void> {
    const { discarded, signal } = this.#reading
    if (!this.#isOpen || this.#isEnding) return
    this.#isEnding = true
    if (discarded === undefined || signal?.aborted === true) this.#close(false)
    else void this.#discard(discarded)
  }

  /** Reads the rest in the background. Closing the connection rejects a read that takes too long. */
  async #discard({ maxBytes, maxMs }: { maxBytes: number; maxMs: number }): Promise<void> {
    const timer = setTimeout(() => this.#close(false), maxMs).unref()
    let bytes = 0
    try {
      while (bytes <= maxBytes) {
        const { done, value } = await this.#chunks.next()
        if (done === true) return this.#close(true)
        bytes += value.byteLength
      }
    } catch {
      // The connection has failed.
    } finally {
      clearTimeout(timer)
      this.#close(false)
    }
  }

  async #next(): Promise<IteratorResult<Buffer>> {
    if (!this.#isOpen || this.#isEnding) throw new OutgoingFailed('aborted', 'The connection is closed')
    const { signal, idleMs } = this.#reading
    const { promise: ended, reject } = Promise.withResolvers<never>()
    const abort = () => reject(new OutgoingFailed('aborted', 'The request was aborted', signal?.reason))
    const timer = setTimeout(
      () => reject(new OutgoingFailed('timeout', `No data within ${idleMs} ms`)),
      idleMs,
    )
    signal?.addEventListener('abort', abort, { once: true })
    try {
      if (signal?.aborted === true) abort()
      const next = this.#chunks.next()
      // Closing the connection rejects a read that lost the race.
      next.catch(() => {})
      return await Promise.race([next, ended])
    } catch (error) {
      this.#close(false)
      throw failureOf(error)
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
  }

  #close(reusable: boolean): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#reading.close(reusable)
  }
}
