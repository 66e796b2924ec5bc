import type { Log } from '@parley/kit/process/log'
import { waitAtMost } from '@parley/kit/process/wait-at-most'
import type { DecisionRecord, RoutingStore } from '../store/routing-store.ts'

/** How long a decision remains readable. */
export const decisionsKeptMs = 7 * 24 * 60 * 60 * 1000
/** Number of unwritten records above which the response waits for the store. */
const pendingMax = 256
/** With a shared store, the response waits at most this long, as the client may read the record at another gateway. */
const sharedWaitMs = 250

export interface DecisionLogOptions {
  store: Pick<RoutingStore, 'shared' | 'saveDecision' | 'queueDecision' | 'findDecision'>
  log: Log
}

/** Stores decision records. This gateway can read each record before it is written. */
export class DecisionLog {
  readonly #options: DecisionLogOptions
  /** Records not yet written. In an array, because a Map with this churn slows down minor garbage collections. */
  readonly #pending: DecisionRecord[] = []
  #queued = 0

  constructor(options: DecisionLogOptions) {
    this.#options = options
  }

  /**
   * Records the decision for a message. The response to the message does not wait for the record while the store keeps up, except
   * in a shared store, because the client may read the record at another gateway.
   */
  async save(record: DecisionRecord): Promise<void> {
    const { store, log } = this.#options
    const written = store.queueDecision(record)
    if (store.shared) return written
    this.#queued += 1
    const settled = written
      .catch((error: unknown) => log.error({ err: error }, 'failed to record a decision'))
      .finally(() => (this.#queued -= 1))
    if (this.#queued > pendingMax) await settled
  }

  /** Like `save`, but resolves early while the store keeps up. Never rejects. */
  async saveInBackground(record: DecisionRecord): Promise<void> {
    const { store, log } = this.#options
    this.#pending.push(record)
    const written = store
      .saveDecision(record, true)
      .catch((error: unknown) => log.error({ err: error }, 'failed to record a decision'))
      .finally(() => this.#pending.splice(this.#pending.indexOf(record), 1))
    if (this.#pending.length > pendingMax) await written
    else if (store.shared) await waitAtMost(sharedWaitMs, written)
  }

  async find(id: string): Promise<DecisionRecord | undefined> {
    return this.#pending.find((record) => record.id === id) ?? this.#options.store.findDecision(id)
  }
}
