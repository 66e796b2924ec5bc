import { createHash, timingSafeEqual } from 'node:crypto'
import { newSecret } from '../key-files.ts'
import type { OAuthStore } from '../oauth-store.ts'
import { type BucketSize, bucketId, hashed, StoredBuckets } from '../stored-buckets.ts'

export interface SignInAttempt {
  /** The sign-in code, or the password of an account. */
  code: string
  /** The account that the person names. Undefined for the sign-in code. */
  account?: string | undefined
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

/** Checks a code or a password. The time that it takes must not depend on the result. */
type Verify = (attempt: SignInAttempt) => Promise<boolean>

const limits = {
  session: { burst: 5, refillSeconds: 30 },
  // After five attempts, the delay is 30 seconds, and after twenty it is five minutes.
  account: { burst: 5, refillSeconds: 30 },
  'account-long': { burst: 20, refillSeconds: 300 },
  address: { burst: 30, refillSeconds: 20 },
  device: { burst: 30, refillSeconds: 20 },
  everybody: { burst: 300, refillSeconds: 1 },
} as const satisfies Record<string, BucketSize>
export type LimitName = keyof typeof limits

export const deviceDays = 90
const model = 'SignIn'

type Store = Pick<OAuthStore, 'find' | 'insert' | 'exchange' | 'destroy'>

/**
 * Compares an entered code with the machine's sign-in code, or a password with that of an account. Attempts are limited per approval request, per address and
 * across all addresses. In the long run about one attempt per second is allowed, which makes it infeasible to guess 100
 * random bits. Wrong codes from one address do not lock out other addresses, and a browser that has signed in before has
 * a separate limit ("device cookie"), so that attempts of others do not lock out the owner of an account. Each attempt is counted before its code is compared. The limits are stored, so
 * all gateways share them and they survive a restart.
 */
export class SignIn {
  readonly #verify: Verify
  readonly #store: Store
  readonly #buckets: StoredBuckets
  readonly #now: () => number

  /** @param code the sign-in code, or a function that checks the attempt */
  constructor(code: string | Verify, store: Store, now = Date.now) {
    this.#verify = typeof code === 'string' ? isCode(digest(code)) : code
    this.#store = store
    this.#buckets = new StoredBuckets(store, model, now)
    this.#now = now
  }

  /** @throws ParleyError Unavailable if the attempt cannot be counted */
  async check(attempt: SignInAttempt): Promise<SignInAnswer> {
    const { account } = attempt
    const device = await this.#knownDevice(attempt)
    const buckets: [LimitName, string][] = [['session', attempt.session]]
    if (device !== undefined) buckets.push(['device', device])
    else {
      buckets.push(['address', attempt.address], ['everybody', ''])
      if (account !== undefined) buckets.push(['account', account], ['account-long', account])
    }
    let longest: { waitSeconds: number; limit?: LimitName } = { waitSeconds: 0 }
    for (const [limit, key] of buckets) {
      const { isTaken, waitMs } = await this.#buckets.take(limit, key, limits[limit])
      const waitSeconds = Math.ceil(waitMs / 1000)
      if (!isTaken) return { accepted: false, waitSeconds, limit }
      if (waitSeconds > longest.waitSeconds) longest = { waitSeconds, limit }
    }
    if (!(await this.#verify(attempt))) return { accepted: false, ...longest }
    await this.#succeeded(attempt)
    return device === undefined
      ? { accepted: true, device: await this.#newDevice(account) }
      : { accepted: true }
  }

  /** The owner of an account is not limited by earlier attempts, and people who share an address not by each other's success. */
  async #succeeded({ account, address }: SignInAttempt): Promise<void> {
    if (account === undefined) return
    for (const limit of ['account', 'account-long'])
      await this.#store.destroy(model, bucketId(limit, account))
    await this.#buckets.giveBack('address', address, limits.address)
  }

  /** Returns undefined for an unknown device, an expired sign-in or the sign-in of another account. */
  async #knownDevice({ device, account }: SignInAttempt): Promise<string | undefined> {
    if (device === undefined) return undefined
    const known = await this.#store.find(model, deviceId(device))
    if (known === undefined || known['account'] !== account) return undefined
    return Number(known['until'] ?? 0) > this.#now() ? device : undefined
  }

  async #newDevice(account: string | undefined): Promise<string> {
    const device = newSecret()
    const expiresAt = this.#secondsFromNow(deviceDays * 86_400)
    await this.#store.insert({
      model,
      id: deviceId(device),
      payload: { until: expiresAt * 1000, ...(account !== undefined && { account }) },
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

function isCode(expected: Buffer): Verify {
  return async ({ code }) => timingSafeEqual(digest(code), expected)
}

/** Hashes a code so that the comparison takes constant time. Case, spaces and dashes are ignored. */
function digest(code: string): Buffer {
  return createHash('sha256').update(code.replace(/[\s-]/g, '').toUpperCase()).digest()
}
