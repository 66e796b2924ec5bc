import type { Dispatcher } from 'undici'

/**
 * Collects an HTTP answer of at most so many bytes. Handed to undici's `dispatch` as it is: the stream that its `request`
 * makes of each answer costs more than sending the request.
 */
export class SmallAnswer implements Dispatcher.DispatchHandler {
  readonly #maxBytes: number
  readonly #received = Promise.withResolvers<{ status: number; text: string }>()
  readonly #chunks: Buffer[] = []
  #controller: Dispatcher.DispatchController | undefined
  #givenUp: Error | undefined
  #status = 0
  #size = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    // It may be given up before anybody waits for it.
    this.#received.promise.catch(() => {})
  }

  /** Rejects when the connection fails, the answer is too late or too large. */
  get received(): Promise<{ status: number; text: string }> {
    return this.#received.promise
  }

  /** For an answer that takes too long as a whole: waiting for a connection, or dripping. */
  giveUp(reason: Error): void {
    this.#givenUp = reason
    // Perhaps nobody waits for it yet.
    this.#received.promise.catch(() => {})
    this.#received.reject(reason)
    this.#controller?.abort(reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#givenUp !== undefined) controller.abort(this.#givenUp)
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.byteLength
    if (this.#size > this.#maxBytes) controller.abort(new Error('answer is too large'))
    else this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    const text = Buffer.concat(this.#chunks).toString('utf8')
    this.#received.resolve({ status: this.#status, text })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#received.reject(error)
  }
}
