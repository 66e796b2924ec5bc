import { OutgoingFailed } from './outgoing-errors.ts'

/**
 * The end of one request, by time or by its caller. A signal of its own is made only for who asks for it: most requests,
 * over connections that are open, need none, and signals are dear.
 */
export class Deadline implements Disposable {
  readonly #outer: AbortSignal | undefined
  readonly #timer: NodeJS.Timeout
  readonly #leave = () =>
    this.#end(new OutgoingFailed('aborted', 'The request was given up', this.#outer?.reason))
  #reason: OutgoingFailed | undefined
  #abort: AbortController | undefined
  #told: ((reason: OutgoingFailed) => void) | undefined

  /** @param ms for all of the request */
  constructor(ms: number, outer: AbortSignal | undefined) {
    this.#outer = outer
    this.#timer = setTimeout(
      () => this.#end(new OutgoingFailed('timeout', `No whole answer within ${ms} ms`)),
      ms,
    )
    if (outer?.aborted === true) this.#leave()
    else outer?.addEventListener('abort', this.#leave, { once: true })
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    if (this.#reason !== undefined) this.#abort.abort(this.#reason)
    return this.#abort.signal
  }

  /** @throws OutgoingFailed */
  throwIfOver(): void {
    if (this.#reason !== undefined) throw this.#reason
  }

  /** Tells one listener, once; right away where it is over already. */
  whenOver(tell: (reason: OutgoingFailed) => void): void {
    if (this.#reason === undefined) this.#told = tell
    else tell(this.#reason)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#outer?.removeEventListener('abort', this.#leave)
    this.#told = undefined
  }

  #end(reason: OutgoingFailed): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    this.#abort?.abort(reason)
    this.#told?.(reason)
  }
}
