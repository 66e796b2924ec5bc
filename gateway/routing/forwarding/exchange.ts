import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import type { ForwardedCall } from '../../records/forwarded-calls.ts'
import type { ResponseIdRewriter } from './response-id.ts'

export interface ResponseHead {
  status: number
  headers: IncomingHttpHeaders
}

/** These responses have no body, whatever their headers say (RFC 9110, sections 15.3.5 and 15.4.5). */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 304
}

/**
 * Receives a copy of a response body while it is forwarded. A method that stores what the caller's next request needs
 * returns a promise, which must not reject: the caller receives this chunk, or the end, only after it has resolved.
 */
export interface ResponseObserver {
  /** Set if `end` stores something. The last chunk is then held back, because it may complete the response. */
  readonly holdsLastChunk?: boolean
  chunk(chunk: Buffer): Promise<void> | undefined
  end(): Promise<void> | undefined
}

/** The consumer of a response body. */
interface Sink {
  data(chunk: Buffer): void
  end(): void
  failed(error: Error): void
}

/** Most responses arrive before their consumer, because the status is awaited. Pausing the connection costs more than such a body. */
const waitingMaxBytes = 64 * 1024

/** The response exceeds the limit of `collect`. */
export class ResponseTooLarge extends Error {
  override readonly name = 'AnswerTooLarge'
}

/**
 * One request to an agent and its response, as a handler for undici's `dispatch`. The streams of undici's `request`
 * cost more than the request itself. A body of more than 64 KiB is paused until a consumer is attached.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  /** Whether any byte of the request may have been written. While this is false, the agent has received nothing. */
  sent = false
  readonly #head = Promise.withResolvers<ResponseHead>()
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  #controller: Dispatcher.DispatchController | undefined
  #sink: Sink | undefined
  #ended: Error | true | undefined
  #aborted: Error | undefined
  readonly #answerId: ResponseIdRewriter | undefined
  /** Undefined once the outcome of the call, or the first event of a stream, has been counted. */
  #call: ForwardedCall | undefined
  #hasNoHead = true

  /**
   * @param answerId restores the caller's id in the response
   * @param call counts the call
   */
  constructor(answerId?: ResponseIdRewriter, call?: ForwardedCall) {
    this.#answerId = answerId
    this.#call = call
  }

  /** Rejects when the request fails before a response starts. */
  get head(): Promise<ResponseHead> {
    return this.#head.promise
  }

  abort(reason: unknown): void {
    this.#aborted ??= errorOf(reason)
    this.#controller?.abort(this.#aborted)
  }

  /**
   * Buffers the whole body.
   * @param grew called with each chunk's length before the chunk is buffered; may throw to abort
   * @throws ResponseTooLarge, errors of `grew`, and errors of the connection
   */
  collect(maxBytes: number, grew: (bytes: number) => void): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    const chunks: Buffer[] = []
    let size = 0
    this.#take({
      data: (chunk) => {
        size += chunk.byteLength
        try {
          if (size > maxBytes) throw new ResponseTooLarge(`more than ${maxBytes} bytes`)
          grew(chunk.byteLength)
          chunks.push(chunk)
        } catch (error) {
          chunks.length = 0
          // A response that has already ended cannot be aborted.
          reject(error)
          this.abort(error)
        }
      },
      end: () => resolve(joined(chunks)),
      failed: reject,
    })
    return promise
  }

  /** Reads until `enough` returns true or the response ends. The rest stays available for `pipe`. */
  peek(enough: (received: Buffer) => boolean): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    let received: Buffer = Buffer.alloc(0)
    const found = () => {
      this.#sink = undefined
      resolve(received)
    }
    this.#take({
      data: (chunk) => {
        received = Buffer.concat([received, chunk])
        if (enough(received)) found()
      },
      end: found,
      failed: reject,
    })
    return promise
  }

  /** Pipes the body to the client with backpressure. A broken response destroys the client's connection. */
  pipe(raw: ServerResponse, watch?: ResponseObserver): void {
    const holdsLastChunk = this.#ended === true || watch?.holdsLastChunk === true
    let held: Buffer | undefined
    let isFull = false
    const write = (chunk: Buffer) => {
      if (raw.write(chunk) || raw.destroyed) return
      this.#controller?.pause()
      if (isFull) return
      isFull = true
      raw.once('drain', () => {
        isFull = false
        this.#controller?.resume()
      })
    }
    const forward = (chunk: Buffer) => {
      if (!holdsLastChunk) return write(chunk)
      if (held !== undefined) write(held)
      held = chunk
    }
    const sink: Sink = {
      data: (chunk) => {
        const recorded = watch?.chunk(chunk)
        if (recorded === undefined) return forward(chunk)
        // Until the record is written, the rest of the response waits as it does before a consumer is attached.
        this.#sink = undefined
        void this.#after(recorded, raw, () => {
          forward(chunk)
          take()
        })
      },
      end: () => {
        let recorded: Promise<void> | undefined
        try {
          recorded = watch?.end()
        } finally {
          if (recorded === undefined) raw.end(held)
          else void this.#after(recorded, raw, () => raw.end(held))
        }
      },
      // What was written in this turn is sent first.
      failed: () => void setImmediate(() => raw.destroy()),
    }
    const take = () => {
      this.#take(sink)
      if (isFull) this.#controller?.pause()
    }
    take()
  }

  /** Calls the function once the record is written, unless the client has disconnected. */
  async #after(recorded: Promise<void>, raw: ServerResponse, next: () => void): Promise<void> {
    await recorded
    if (raw.destroyed) return
    try {
      next()
    } catch (error) {
      this.abort(error)
      raw.destroy()
    }
  }

  #take(sink: Sink): void {
    this.#sink = sink
    for (let chunk = this.#waiting.shift(); chunk !== undefined; chunk = this.#waiting.shift()) {
      this.#waitingBytes -= chunk.byteLength
      sink.data(chunk)
      if (this.#sink !== sink) return
    }
    if (this.#ended === true) sink.end()
    else if (this.#ended !== undefined) sink.failed(this.#ended)
    else this.#controller?.resume()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#aborted === undefined) this.sent = true
    else controller.abort(this.#aborted)
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return
    this.#hasNoHead = false
    this.#call?.answered(status)
    if (headers['content-type']?.startsWith('text/event-stream') !== true) this.#call = undefined
    const bodiless = isBodiless(status)
    // The HTTP client would report the missing body as a broken response.
    if (bodiless) this.#ended = true
    // The restored id may differ in length from the id that the agent received.
    if (this.#answerId === undefined && !bodiless) return this.#head.resolve({ status, headers })
    const { 'content-length': _length, ...others } = headers
    this.#head.resolve({ status, headers: others })
  }

  onResponseData(controller: Dispatcher.DispatchController, bytes: Buffer): void {
    this.#call?.firstEvent()
    this.#call = undefined
    const chunk = this.#answerId?.chunk(bytes) ?? bytes
    if (chunk.byteLength === 0) return
    if (this.#sink !== undefined) return this.#sink.data(chunk)
    this.#waiting.push(chunk)
    this.#waitingBytes += chunk.byteLength
    if (this.#waitingBytes > waitingMaxBytes) controller.pause()
  }

  onResponseEnd(): void {
    if (this.#ended !== undefined) return
    const held = this.#answerId?.end()
    if (held !== undefined && held.byteLength > 0) {
      if (this.#sink === undefined) this.#waiting.push(held)
      else this.#sink.data(held)
    }
    this.#ended = true
    if (this.#waiting.length === 0) this.#sink?.end()
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    if (this.#ended !== undefined) return
    this.#ended = error
    // After the head, the call has been counted. A caller that left is no failure of the agent.
    if (this.#hasNoHead && this.#aborted === undefined) this.#call?.failed()
    // The head may no longer be awaited.
    this.#head.promise.catch(() => {})
    this.#head.reject(error)
    this.#sink?.failed(error)
  }
}

/** Does not copy a single chunk. */
export function joined(chunks: readonly Buffer[]): Buffer {
  const [first] = chunks
  return first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks)
}

export const errorOf = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown))
