import { OutgoingFailed } from './outgoing-errors.ts'

/**
 * Ends a request after a time limit or on the caller's signal. The AbortSignal is created on demand: requests over
 * open connections need none, and signals are expensive.
 */
export class Deadline implements Disposable {
  readonly #callerSignal: AbortSignal | undefined
  readonly #timer: NodeJS.Timeout
  readonly #abortedByCaller = () =>
    this.#end(new OutgoingFailed('aborted', 'The request was aborted', this.#callerSignal?.reason))
  #reason: OutgoingFailed | undefined
  #abort: AbortController | undefined
  #listener: ((reason: OutgoingFailed) => void) | undefined

  /** @param ms time limit of the whole request */
  constructor(ms: number, callerSignal: AbortSignal | undefined) {
    this.#callerSignal = callerSignal
    this.#timer = setTimeout(
      () => this.#end(new OutgoingFailed('timeout', `No complete response within ${ms} ms`)),
      ms,
    )
    if (callerSignal?.aborted === true) this.#abortedByCaller()
    else callerSignal?.addEventListener('abort', this.#abortedByCaller, { once: true })
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    if (this.#reason !== undefined) this.#abort.abort(this.#reason)
    return this.#abort.signal
  }

  /** @throws OutgoingFailed */
  throwIfEnded(): void {
    if (this.#reason !== undefined) throw this.#reason
  }

  /** Sets the only listener, which is called once, or immediately if the deadline has already ended. */
  onEnd(listener: (reason: OutgoingFailed) => void): void {
    if (this.#reason === undefined) this.#listener = listener
    else listener(this.#reason)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#callerSignal?.removeEventListener('abort', this.#abortedByCaller)
    this.#listener = undefined
  }

  #end(reason: OutgoingFailed): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    this.#abort?.abort(reason)
    this.#listener?.(reason)
  }
}
