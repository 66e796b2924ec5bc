import type { AnswerClaim } from '@parley/kit/process/answer-budget'
import type { ResponseObserver } from './exchange.ts'

const maxBytes = 4 * 1024 * 1024

/**
 * Buffers a forwarded response and calls `onEnd` with the body, unless it exceeds 4 MiB or the claim's memory. The caller
 * receives the end of the response once the promise of `onEnd` has resolved.
 */
export class BufferedResponse implements ResponseObserver {
  readonly holdsLastChunk = true
  readonly #onEnd: (bytes: Buffer) => Promise<void> | undefined
  readonly #claim: AnswerClaim
  readonly #chunks: Buffer[] = []
  #size = 0
  #isHeld = true

  constructor(claim: AnswerClaim, onEnd: (bytes: Buffer) => Promise<void> | undefined) {
    this.#claim = claim
    this.#onEnd = onEnd
  }

  chunk(chunk: Buffer): undefined {
    this.#size += chunk.byteLength
    this.#isHeld &&= this.#size <= maxBytes && this.#claim.tryReserve(this.#size)
    if (this.#isHeld) this.#chunks.push(chunk)
    else this.#chunks.length = 0
  }

  end(): Promise<void> | undefined {
    return this.#isHeld ? this.#onEnd(Buffer.concat(this.#chunks)) : undefined
  }
}
