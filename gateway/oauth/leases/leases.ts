import type { OAuthStore } from '../oauth-store.ts'
import { LeaseGrantor } from './lease-grantor.ts'

/** Keeps the introspection responses of other servers coherent with the changes of all gateways on the store. */
export interface Leases extends AsyncDisposable {
  readonly grantor: LeaseGrantor
  /**
   * Must resolve before a poll is answered.
   * @param seq the last invalidation that the holder has applied
   */
  prepare(seq?: number): Promise<void>
  /**
   * Invalidates the responses with any of these tags. The change that makes them outdated must be durable already.
   * Resolves when no holder uses such a response any longer.
   */
  invalidate(tags: readonly string[]): Promise<void>
}

/** The record that exists while leases may be outstanding, so that a restarted gateway waits for their end. */
const [model, id] = ['GrantedLeases', 'granted']

/** The leases of a gateway that alone uses its store. */
export class OwnLeases implements Leases {
  readonly grantor: LeaseGrantor
  readonly #store: OAuthStore
  #recorded: Promise<void> | undefined

  private constructor(store: OAuthStore, mayBeOutstanding: boolean) {
    this.#store = store
    this.grantor = new LeaseGrantor({ mayBeOutstanding })
    if (mayBeOutstanding) this.#recorded = Promise.resolve()
  }

  static async open(store: OAuthStore): Promise<OwnLeases> {
    return new OwnLeases(store, (await store.find(model, id)) !== undefined)
  }

  prepare(): Promise<void> {
    this.#recorded ??= this.#store.upsert({ model, id, payload: {} }).catch((error: unknown) => {
      this.#recorded = undefined
      throw error
    })
    return this.#recorded
  }

  invalidate(tags: readonly string[]): Promise<void> {
    return this.grantor.invalidate(tags)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.grantor.stop()
    // The store may be unavailable; the next process then waits without need.
    if (this.#recorded !== undefined && !this.grantor.isOutstanding)
      await this.#store.destroy(model, id).catch(() => {})
  }
}
