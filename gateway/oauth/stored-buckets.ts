import { createHash } from 'node:crypto'
import { unavailable } from '@parley/kit/database/errors'
import type { OAuthStore } from './oauth-store.ts'

/** A bucket of `burst` attempts that refills by one every `refillSeconds`. */
export interface BucketSize {
  burst: number
  refillSeconds: number
}

/** How long the bucket of one key is stored. */
const keptSeconds = 3600
/** Maximum number of attempts to update a bucket that others update concurrently. */
const writesMax = 20

/** State of the generic cell rate algorithm: when the bucket will be full again, in milliseconds since 1970. */
interface Bucket {
  fullAt: number
}

/** Rate limits that are stored, so that all gateways share them and they survive a restart. */
export class StoredBuckets {
  readonly #store: Pick<OAuthStore, 'find' | 'insert' | 'exchange'>
  readonly #model: string
  readonly #now: () => number

  /** @param model the model of the records that hold these buckets */
  constructor(store: Pick<OAuthStore, 'find' | 'insert' | 'exchange'>, model: string, now = Date.now) {
    this.#store = store
    this.#model = model
    this.#now = now
  }

  /**
   * @param key the party that the limit applies to; empty for all together
   * @returns whether an attempt was allowed, and `waitMs` until the next one (0 if it may follow immediately)
   * @throws ParleyError Unavailable if the attempt cannot be counted
   */
  async take(
    limit: string,
    key: string,
    { burst, refillSeconds }: BucketSize,
  ): Promise<{ isTaken: boolean; waitMs: number }> {
    const refillMs = refillSeconds * 1000
    const id = bucketId(limit, key)
    for (let write = 0; write < writesMax; write += 1) {
      const now = this.#now()
      const was = await this.#store.find(this.#model, id)
      // After a clock adjustment, a bucket stays closed for no longer than an empty one.
      const fullAt = Math.min(Math.max(Number(was?.['fullAt'] ?? 0), now), now + burst * refillMs)
      const waitFor = (full: number) => Math.max(0, full - now - (burst - 1) * refillMs)
      if (waitFor(fullAt) > 0) return { isTaken: false, waitMs: waitFor(fullAt) }
      const next = fullAt + refillMs
      if (await this.#write(id, was, { fullAt: next }, key === ''))
        return { isTaken: true, waitMs: waitFor(next) }
    }
    throw unavailable('Too many concurrent attempts')
  }

  /** Gives an attempt back, unless others update the bucket concurrently. */
  async giveBack(limit: string, key: string, { refillSeconds }: BucketSize): Promise<void> {
    const id = bucketId(limit, key)
    const was = await this.#store.find(this.#model, id)
    if (was === undefined) return
    await this.#write(id, was, { fullAt: Number(was['fullAt']) - refillSeconds * 1000 }, key === '')
  }

  #write(
    id: string,
    was: Record<string, unknown> | undefined,
    bucket: Bucket,
    isKept: boolean,
  ): Promise<boolean> {
    const model = this.#model
    if (was !== undefined) return this.#store.exchange(model, id, { ...was }, { ...bucket })
    const entry = { model, id, payload: { ...bucket } }
    const expiresAt = Math.ceil(this.#now() / 1000) + keptSeconds
    return this.#store.insert(isKept ? entry : { ...entry, expiresAt })
  }
}

/** Returns the id of the record of a bucket. */
export function bucketId(limit: string, key: string): string {
  return key === '' ? limit : `${limit}:${hashed(key)}`
}

export function hashed(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
