import { createHash, timingSafeEqual } from 'node:crypto'
import { newSecret } from '../key-files.ts'
import type { OAuthStore } from '../oauth-store.ts'
import { type BucketSize, hashed, StoredBuckets } from '../stored-buckets.ts'

export interface SignInAttempt {
  code: string
  /** The id of the approval request for which the code was entered. */
  session: string
  /** The client's address, or its /64 prefix for IPv6. */
  address: string
  /** The value of `device` from an earlier sign-in with this browser. */
  device?: string | undefined
}

export type SignInAnswer =
  /** `device` is set for a new browser and gives that browser a separate limit. */
  | { accepted: true; device?: string }
  /** If `waitSeconds` is positive, no code is checked during that time, because of `limit`. */
  | { accepted: false; waitSeconds: number; limit?: LimitName }

const limits = {
  session: { burst: 5, refillSeconds: 30 },
  address: { burst: 30, refillSeconds: 20 },
  device: { burst: 30, refillSeconds: 20 },
  everybody: { burst: 300, refillSeconds: 1 },
} as const satisfies Record<string, BucketSize>
export type LimitName = keyof typeof limits

export const deviceDays = 90
const model = 'SignIn'

type Store = Pick<OAuthStore, 'find' | 'insert' | 'exchange'>

/**
 * Compares an entered code with the machine's sign-in code. Attempts are limited per approval request, per address and
 * across all addresses. In the long run about one attempt per second is allowed, which makes it infeasible to guess 100
 * random bits. Wrong codes from one address do not lock out other addresses, and a browser that has signed in before has
 * a separate limit ("device cookie"). Each attempt is counted before its code is compared. The limits are stored, so
 * all gateways share them and they survive a restart.
 */
export class SignIn {
  readonly #expected: Buffer
  readonly #store: Store
  readonly #buckets: StoredBuckets
  readonly #now: () => number

  constructor(code: string, store: Store, now = Date.now) {
    this.#expected = digest(code)
    this.#store = store
    this.#buckets = new StoredBuckets(store, model, now)
    this.#now = now
  }

  /** @throws ParleyError Unavailable if the attempt cannot be counted */
  async check(attempt: SignInAttempt): Promise<SignInAnswer> {
    const device = attempt.device === undefined ? undefined : await this.#knownDevice(attempt.device)
    const buckets: [LimitName, string][] = [['session', attempt.session]]
    if (device === undefined) buckets.push(['address', attempt.address], ['everybody', ''])
    else buckets.push(['device', device])
    let longest: { waitSeconds: number; limit?: LimitName } = { waitSeconds: 0 }
    for (const [limit, key] of buckets) {
      const { isTaken, waitMs } = await this.#buckets.take(limit, key, limits[limit])
      const waitSeconds = Math.ceil(waitMs / 1000)
      if (!isTaken) return { accepted: false, waitSeconds, limit }
      if (waitSeconds > longest.waitSeconds) longest = { waitSeconds, limit }
    }
    if (!timingSafeEqual(digest(attempt.code), this.#expected)) return { accepted: false, ...longest }
    return device === undefined ? { accepted: true, device: await this.#newDevice() } : { accepted: true }
  }

  /** Returns undefined for an unknown device or an expired sign-in. */
  async #knownDevice(device: string): Promise<string | undefined> {
    const known = await this.#store.find(model, deviceId(device))
    return Number(known?.['until'] ?? 0) > this.#now() ? device : undefined
  }

  async #newDevice(): Promise<string> {
    const device = newSecret()
    const expiresAt = this.#secondsFromNow(deviceDays * 86_400)
    await this.#store.insert({
      model,
      id: deviceId(device),
      payload: { until: expiresAt * 1000 },
      expiresAt,
    })
    return device
  }

  #secondsFromNow(seconds: number): number {
    return Math.ceil(this.#now() / 1000) + seconds
  }
}

function deviceId(device: string): string {
  return `known-device:${hashed(device)}`
}

/** Hashes a code so that the comparison takes constant time. Case, spaces and dashes are ignored. */
function digest(code: string): Buffer {
  return createHash('sha256').update(code.replace(/[\s-]/g, '').toUpperCase()).digest()
}
