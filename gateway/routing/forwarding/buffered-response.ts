import type { AnswerClaim } from '@parley/kit/process/answer-budget'
import type { ResponseObserver } from './exchange.ts'

const mostBytes = 4 * 1024 * 1024

/** Looks at an answer once it has passed; not at one that is longer than 4 MiB, or that the claim has no room for. */
export class BufferedResponse implements ResponseObserver {
  readonly #look: (bytes: Buffer) => void
  readonly #claim: AnswerClaim
  readonly #chunks: Buffer[] = []
  #size = 0
  #isHeld = true

  constructor(claim: AnswerClaim, look: (bytes: Buffer) => void) {
    this.#claim = claim
    this.#look = look
  }

  chunk(chunk: Buffer): void {
    this.#size += chunk.byteLength
    this.#isHeld &&= this.#size <= mostBytes && this.#claim.tryReserve(this.#size)
    if (this.#isHeld) this.#chunks.push(chunk)
    else this.#chunks.length = 0
  }

  end(): void {
    if (this.#isHeld) this.#look(Buffer.concat(this.#chunks))
  }
}
