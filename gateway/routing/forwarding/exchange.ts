import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import type { ResponseIdRewriter } from './response-id.ts'

export interface ResponseHead {
  status: number
  headers: IncomingHttpHeaders
}

/** RFC 9110, sections 15.3.5 and 15.4.5: such an answer has no body, whatever its headers say. */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 304
}

/** Looks on as an answer passes. */
export interface ResponseObserver {
  chunk(chunk: Buffer): void
  end(): void
}

/** Who takes the body of an answer. */
interface Sink {
  data(chunk: Buffer): void
  end(): void
  failed(error: Error): void
}

/** The answer was longer than whoever collects it would take. */
export class ResponseTooLarge extends Error {
  override readonly name = 'AnswerTooLarge'
}

/**
 * One request to an agent and its answer, handed to undici's `dispatch` as it is: the streams that its `request` makes
 * cost more than sending. The head comes first; the body waits until somebody takes it.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  /** A byte of the request may have been written. While this is false the agent has seen nothing. */
  sent = false
  readonly #head = Promise.withResolvers<ResponseHead>()
  readonly #waiting: Buffer[] = []
  #controller: Dispatcher.DispatchController | undefined
  #sink: Sink | undefined
  #ended: Error | true | undefined
  #aborted: Error | undefined
  readonly #answerId: ResponseIdRewriter | undefined

  /** @param answerId puts the caller's id into the answer */
  constructor(answerId?: ResponseIdRewriter) {
    this.#answerId = answerId
    this.#head.promise.catch(() => {})
  }

  /** Rejects with what went wrong on the way. */
  get head(): Promise<ResponseHead> {
    return this.#head.promise
  }

  abort(reason: Error): void {
    this.#aborted ??= reason
    this.#controller?.abort(reason)
  }

  /**
   * The whole body.
   * @param grew called with the length of each chunk before it is kept; throws to refuse the answer
   * @throws ResponseTooLarge, what `grew` throws, or what broke the answer off
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
          this.abort(error as Error)
        }
      },
      end: () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)),
      failed: reject,
    })
    return promise
  }

  /** What has come so far, until `enough` is content or the answer has ended; then the rest waits for `pipe`. */
  peek(enough: (sofar: Buffer) => boolean): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    let sofar: Buffer = Buffer.alloc(0)
    const found = () => {
      this.#sink = undefined
      resolve(sofar)
    }
    this.#take({
      data: (chunk) => {
        sofar = Buffer.concat([sofar, chunk])
        if (enough(sofar)) found()
      },
      end: found,
      failed: reject,
    })
    return promise
  }

  /** The body as it comes; a client that reads slowly slows the agent. An answer that breaks off breaks off for the client. */
  pipe(raw: ServerResponse, watch?: ResponseObserver): void {
    const go = () => this.#controller?.resume()
    this.#take({
      data: (chunk) => {
        watch?.chunk(chunk)
        if (raw.write(chunk) || raw.destroyed) return
        this.#controller?.pause()
        raw.once('drain', go)
      },
      end: () => {
        // First the observer: what it records should be there for the client's next request.
        watch?.end()
        raw.end()
      },
      failed: () => void raw.destroy(),
    })
  }

  #take(sink: Sink): void {
    this.#sink = sink
    for (let chunk = this.#waiting.shift(); chunk !== undefined; chunk = this.#waiting.shift()) {
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
    const bodiless = isBodiless(status)
    // The HTTP client would take the missing body for an answer that broke off.
    if (bodiless) this.#ended = true
    // The caller's id may be longer or shorter than the one that the agent got.
    if (this.#answerId === undefined && !bodiless) return this.#head.resolve({ status, headers })
    const { 'content-length': _length, ...others } = headers
    this.#head.resolve({ status, headers: others })
  }

  onResponseData(controller: Dispatcher.DispatchController, received: Buffer): void {
    const chunk = this.#answerId?.chunk(received) ?? received
    if (chunk.byteLength === 0) return
    if (this.#sink !== undefined) return this.#sink.data(chunk)
    this.#waiting.push(chunk)
    controller.pause()
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
    this.#head.reject(error)
    this.#sink?.failed(error)
  }
}
