import { createHash, timingSafeEqual } from 'node:crypto'

export type SignInAnswer = { accepted: true } | { accepted: false; waitSeconds: number }

const freeTries = 5
const firstWaitSeconds = 30
const longestWaitSeconds = 300

/**
 * Compares what a person typed with the machine's sign-in code. After five wrong tries every code, the right one too, is
 * refused for a while that doubles with each further wrong try, up to five minutes. The count is kept in memory: a
 * restart forgets it, which 100 random bits can bear.
 */
export class SignIn {
  readonly #expected: Buffer
  readonly #now: () => number
  #wrong = 0
  #closedUntil = 0

  constructor(code: string, now: () => number = Date.now) {
    this.#expected = digest(code)
    this.#now = now
  }

  check(code: string): SignInAnswer {
    const waitMs = this.#closedUntil - this.#now()
    if (waitMs > 0) return { accepted: false, waitSeconds: Math.ceil(waitMs / 1000) }
    if (timingSafeEqual(digest(code), this.#expected)) {
      this.#wrong = 0
      return { accepted: true }
    }
    this.#wrong += 1
    const waitSeconds = this.#waitSeconds()
    this.#closedUntil = this.#now() + waitSeconds * 1000
    return { accepted: false, waitSeconds }
  }

  #waitSeconds(): number {
    if (this.#wrong < freeTries) return 0
    return Math.min(firstWaitSeconds * 2 ** Math.min(this.#wrong - freeTries, 16), longestWaitSeconds)
  }
}

/** Hashed, so that the comparison takes as long for a code of another length. Case, spaces and dashes do not count. */
function digest(code: string): Buffer {
  return createHash('sha256').update(code.replace(/[\s-]/g, '').toUpperCase()).digest()
}
