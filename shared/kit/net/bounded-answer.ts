import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { OutgoingFailed } from './outgoing-errors.ts'

export interface ReceivedAnswer {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
  /** It was read to its end: the connection can be used again. */
  complete: boolean
}

/**
 * Collects an answer of at most so many bytes, as they are sent: nothing is unpacked. Where the body is discarded, the
 * answer is known with its status: whatever becomes of the body, it is no failure.
 */
export class BoundedAnswer implements Dispatcher.DispatchHandler {
  readonly #maxBytes: number
  readonly #discardBody: boolean
  readonly #received = Promise.withResolvers<ReceivedAnswer>()
  readonly #chunks: Buffer[] = []
  #controller: Dispatcher.DispatchController | undefined
  #givenUp: Error | undefined
  #status = 0
  #headers: IncomingHttpHeaders = {}
  #size = 0

  /** @param options.discardBody what is beyond the limit is cut off, and the body is empty */
  constructor(options: { maxBytes: number; discardBody: boolean }) {
    this.#maxBytes = options.maxBytes
    this.#discardBody = options.discardBody
    // It may be given up before anybody waits for it.
    this.#received.promise.catch(() => {})
  }

  get received(): Promise<ReceivedAnswer> {
    return this.#received.promise
  }

  giveUp(error: Error): void {
    this.#givenUp ??= error
    this.#fail(error)
    this.#controller?.abort(error)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#givenUp !== undefined) controller.abort(this.#givenUp)
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200) return
    this.#status = status
    this.#headers = headers
    if (this.#discardBody) return
    const encoding = headers['content-encoding'] ?? 'identity'
    if (encoding.trim().toLowerCase() !== 'identity')
      this.giveUp(new OutgoingFailed('encoding', 'The answer is compressed, which was not asked for'))
    else if (Number(headers['content-length'] ?? 0) > this.#maxBytes) this.giveUp(this.#tooLarge())
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.byteLength
    if (this.#size <= this.#maxBytes) {
      if (!this.#discardBody) this.#chunks.push(chunk)
    } else if (this.#discardBody) {
      this.#resolve(false)
      controller.abort(this.#tooLarge())
    } else this.giveUp(this.#tooLarge())
  }

  onResponseEnd(): void {
    this.#resolve(true)
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#fail(error)
  }

  #fail(error: Error): void {
    if (this.#discardBody && this.#status > 0) this.#resolve(false)
    else this.#received.reject(error)
  }

  #resolve(complete: boolean): void {
    const body = Buffer.concat(this.#chunks)
    this.#received.resolve({ status: this.#status, headers: this.#headers, body, complete })
  }

  #tooLarge(): OutgoingFailed {
    return new OutgoingFailed('too_large', `The answer is larger than ${this.#maxBytes} bytes`)
  }
}
