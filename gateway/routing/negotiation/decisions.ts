import type { Log } from '@parley/kit/process/log'
import { waitAtMost } from '@parley/kit/process/wait-at-most'
import type { DecisionRecord, RoutingStore } from '../store/routing-store.ts'

/** How long a decision can be read. */
export const decisionsKeptMs = 7 * 24 * 60 * 60 * 1000
/** Records that may wait for the store while their callers are answered. */
const behindMax = 256
/** Another gateway may be asked for the record at once, so that the answer waits for a shared store, but not for one that is away. */
const elsewhereMs = 250

export interface DecisionLogOptions {
  store: Pick<RoutingStore, 'shared' | 'saveDecision' | 'findDecision'>
  log: Log
}

/** The records of what was decided; here each can be read from the moment that it is handed over. */
export class DecisionLog {
  readonly #options: DecisionLogOptions
  /**
   * Not in the store yet. No Map: one that records come to and leave at once leaves tables behind that hold each other, and
   * with them records, until the next full garbage collection; those of young garbage become slow by it.
   */
  readonly #behind: DecisionRecord[] = []

  constructor(options: DecisionLogOptions) {
    this.#options = options
  }

  /** Durable when the promise resolves. */
  save(record: DecisionRecord): Promise<void> {
    return this.#options.store.saveDecision(record)
  }

  /** For those who do not wait for the store, as long as it keeps up. Never rejects. */
  async saveInBackground(record: DecisionRecord): Promise<void> {
    const { store, log } = this.#options
    this.#behind.push(record)
    const written = store
      .saveDecision(record, true)
      .catch((error: unknown) => log.error({ err: error }, 'a decision could not be recorded'))
      .finally(() => this.#behind.splice(this.#behind.indexOf(record), 1))
    if (this.#behind.length > behindMax) await written
    else if (store.shared) await waitAtMost(elsewhereMs, written)
  }

  async find(id: string): Promise<DecisionRecord | undefined> {
    return this.#behind.find((record) => record.id === id) ?? this.#options.store.findDecision(id)
  }
}
