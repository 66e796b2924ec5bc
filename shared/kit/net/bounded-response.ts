import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { OutgoingFailed } from './outgoing-errors.ts'

export interface ReceivedResponse {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
  /** Whether the body was read to its end, so that the connection can be reused. */
  complete: boolean
}

/**
 * Collects an HTTP response of at most `maxBytes` bytes without decompressing it. As a handler for undici's
 * `dispatch` it avoids the stream per response of undici's `request`. With `discardBody`, only the status matters: a
 * body that is incomplete or exceeds the limit is not a failure.
 */
export class BoundedResponse implements Dispatcher.DispatchHandler {
  readonly #maxBytes: number
  readonly #discardBody: boolean
  readonly #received = Promise.withResolvers<ReceivedResponse>()
  readonly #chunks: Buffer[] = []
  #controller: Dispatcher.DispatchController | undefined
  #aborted: Error | undefined
  #status = 0
  #headers: IncomingHttpHeaders = {}
  #size = 0

  /** @param options.discardBody whether to return an empty body and cut off a body that exceeds the limit */
  constructor(options: { maxBytes: number; discardBody?: boolean }) {
    this.#maxBytes = options.maxBytes
    this.#discardBody = options.discardBody ?? false
    // Prevents an unhandled rejection if `abort` runs before `received` has a reader.
    this.#received.promise.catch(() => {})
  }

  /** Rejects if the connection fails or the response is too large, or with the reason of `abort`. */
  get received(): Promise<ReceivedResponse> {
    return this.#received.promise
  }

  /** Ends the request, even while it waits for a connection or the body arrives slowly. */
  abort(error: Error): void {
    this.#aborted ??= error
    this.#fail(error)
    this.#controller?.abort(error)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#aborted !== undefined) controller.abort(this.#aborted)
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
      this.abort(
        new OutgoingFailed('encoding', 'The response is compressed, although no compression was requested'),
      )
    else if (Number(headers['content-length'] ?? 0) > this.#maxBytes) this.abort(this.#tooLarge())
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.byteLength
    if (this.#size <= this.#maxBytes) {
      if (!this.#discardBody) this.#chunks.push(chunk)
    } else if (this.#discardBody) {
      this.#resolve(false)
      controller.abort(this.#tooLarge())
    } else this.abort(this.#tooLarge())
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
    return new OutgoingFailed('too_large', `The response is larger than ${this.#maxBytes} bytes`)
  }
}
