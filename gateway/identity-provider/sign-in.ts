import { createHash, timingSafeEqual } from 'node:crypto'
import { unavailable } from '../../shared/store/group-commit.ts'
import type { OAuthStore } from './oauth-store.ts'

export type SignInAnswer = { accepted: true } | { accepted: false; waitSeconds: number }

const freeTries = 5
const firstWaitSeconds = 30
const longestWaitSeconds = 300
/** Of writing a count that others change at the same time. */
const attemptsMax = 20
const model = 'SignIn'
const id = 'wrong-tries'

interface Tries {
  wrong: number
  /** Milliseconds since 1970. */
  closedUntil: number
}

/**
 * Compares what a person typed with the machine's sign-in code. After five wrong tries every code, the right one too, is
 * refused for a while that doubles with each further wrong try, up to five minutes. The count is in the store: one for all
 * gateways that share it, and a restart forgets nothing.
 */
export class SignIn {
  readonly #expected: Buffer
  readonly #store: Pick<OAuthStore, 'find' | 'insert' | 'exchange'>
  readonly #now: () => number

  constructor(code: string, store: Pick<OAuthStore, 'find' | 'insert' | 'exchange'>, now = Date.now) {
    this.#expected = digest(code)
    this.#store = store
    this.#now = now
  }

  /** No answer before the try is counted. @throws ParleyError Unavailable when it cannot be */
  async check(code: string): Promise<SignInAnswer> {
    const isRight = timingSafeEqual(digest(code), this.#expected)
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const was = (await this.#store.find(model, id)) as Tries | undefined
      const { wrong, closedUntil } = was ?? { wrong: 0, closedUntil: 0 }
      const waitMs = Math.min(closedUntil - this.#now(), longestWaitSeconds * 1000)
      if (waitMs > 0) return { accepted: false, waitSeconds: Math.ceil(waitMs / 1000) }
      if (isRight && wrong === 0) return { accepted: true }
      const waitSeconds = isRight ? 0 : waitAfter(wrong + 1)
      const tries = isRight
        ? { wrong: 0, closedUntil: 0 }
        : { wrong: wrong + 1, closedUntil: this.#now() + waitSeconds * 1000 }
      // Who comes second counts on from what the first one wrote.
      if (await this.#write(was, tries))
        return isRight ? { accepted: true } : { accepted: false, waitSeconds }
    }
    throw unavailable('Too many sign in at once')
  }

  #write(was: Tries | undefined, tries: Tries): Promise<boolean> {
    if (was === undefined) return this.#store.insert({ model, id, payload: { ...tries } })
    return this.#store.exchange(model, id, { ...was }, { ...tries })
  }
}

function waitAfter(wrong: number): number {
  if (wrong < freeTries) return 0
  return Math.min(firstWaitSeconds * 2 ** Math.min(wrong - freeTries, 16), longestWaitSeconds)
}

/** Hashed, so that the comparison takes as long for a code of another length. Case, spaces and dashes do not count. */
function digest(code: string): Buffer {
  return createHash('sha256').update(code.replace(/[\s-]/g, '').toUpperCase()).digest()
}
