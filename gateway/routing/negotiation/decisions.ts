import type { Log } from '@parley/kit/process/log'
import { waitAtMost } from '@parley/kit/process/wait-at-most'
import type { DecisionRecord, RoutingStore } from '../store/routing-store.ts'

/** How long a decision can be read. */
export const decisionsKeptMs = 7 * 24 * 60 * 60 * 1000
/** Unwritten records above which the response waits for the store. */
const pendingMax = 256
/** With a shared store the response waits up to this time, because the client may read the record from another gateway. */
const sharedWaitMs = 250

export interface DecisionLogOptions {
  store: Pick<RoutingStore, 'shared' | 'saveDecision' | 'findDecision'>
  log: Log
}

/** Stores decision records; each can be read from this gateway before it is written. */
export class DecisionLog {
  readonly #options: DecisionLogOptions
  /** Records not yet written. An array: a Map with this churn keeps old hash tables alive and slows down minor collections. */
  readonly #pending: DecisionRecord[] = []

  constructor(options: DecisionLogOptions) {
    this.#options = options
  }

  /** Durable when the promise resolves. */
  save(record: DecisionRecord): Promise<void> {
    return this.#options.store.saveDecision(record)
  }

  /** Resolves early while the store keeps up. Never rejects. */
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
