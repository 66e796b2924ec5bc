import type { AnswerClaim } from '@parley/kit/process/answer-budget'
import type { ResponseObserver } from './exchange.ts'

const maxBytes = 4 * 1024 * 1024

/** Buffers a forwarded response and calls `onEnd` with the body, unless it exceeds 4 MiB or the claim's memory. */
export class BufferedResponse implements ResponseObserver {
  readonly #onEnd: (bytes: Buffer) => void
  readonly #claim: AnswerClaim
  readonly #chunks: Buffer[] = []
  #size = 0
  #isHeld = true

  constructor(claim: AnswerClaim, onEnd: (bytes: Buffer) => void) {
    this.#claim = claim
    this.#onEnd = onEnd
  }

  chunk(chunk: Buffer): void {
    this.#size += chunk.byteLength
    this.#isHeld &&= this.#size <= maxBytes && this.#claim.tryReserve(this.#size)
    if (this.#isHeld) this.#chunks.push(chunk)
    else this.#chunks.length = 0
  }

  end(): void {
    if (this.#isHeld) this.#onEnd(Buffer.concat(this.#chunks))
  }
}
