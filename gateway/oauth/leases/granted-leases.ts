import type { OAuthStore } from '../oauth-store.ts'
import { LeaseGrantor } from './lease-grantor.ts'

/** The record that exists while leases may be outstanding, so that a restarted gateway waits for their end. */
const [model, id] = ['GrantedLeases', 'granted']

/** Opens the grantor of a gateway, and records in the store whether leases are outstanding. */
export class GrantedLeases implements AsyncDisposable {
  readonly leases: LeaseGrantor
  readonly #store: OAuthStore
  #recorded: Promise<void> | undefined

  private constructor(store: OAuthStore, mayBeOutstanding: boolean) {
    this.#store = store
    this.leases = new LeaseGrantor({ mayBeOutstanding })
    if (mayBeOutstanding) this.#recorded = Promise.resolve()
  }

  /** @param isShared whether other gateways use the store too; no leases are granted then */
  static async open(store: OAuthStore, isShared: boolean): Promise<GrantedLeases> {
    if (!isShared) return new GrantedLeases(store, (await store.find(model, id)) !== undefined)
    const granted = new GrantedLeases(store, false)
    granted.leases.stop()
    return granted
  }

  /** Must resolve before a lease is granted. */
  record(): Promise<void> {
    this.#recorded ??= this.#store.upsert({ model, id, payload: {} }).catch((error: unknown) => {
      this.#recorded = undefined
      throw error
    })
    return this.#recorded
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.leases.stop()
    // The store may be unavailable; the next process then waits without need.
    if (this.#recorded !== undefined && !this.leases.isOutstanding)
      await this.#store.destroy(model, id).catch(() => {})
  }
}
