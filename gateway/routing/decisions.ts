import type { Log } from '../../shared/process/log.ts'
import type { DecisionRecord, RoutingStore } from './routing-store.ts'

/** Records that may wait for the store while their callers are answered. */
const behindMax = 256

export interface DecisionsOptions {
  store: Pick<RoutingStore, 'shared' | 'saveDecision' | 'findDecision'>
  log: Log
}

/** The records of what was decided; each can be read from the moment that it is handed over. */
export class Decisions {
  readonly #options: DecisionsOptions
  /** Not in the store yet. */
  readonly #behind = new Map<string, DecisionRecord>()

  constructor(options: DecisionsOptions) {
    this.#options = options
  }

  /** Durable when the promise resolves. */
  save(record: DecisionRecord): Promise<void> {
    return this.#options.store.saveDecision(record)
  }

  /** For those who do not wait for the store, as long as it keeps up. Never rejects. */
  async saveBehind(record: DecisionRecord): Promise<void> {
    const { store, log } = this.#options
    this.#behind.set(record.id, record)
    const written = store
      .saveDecision(record, true)
      .catch((error: unknown) => log.error({ err: error }, 'a decision could not be recorded'))
      .finally(() => this.#behind.delete(record.id))
    if (this.#behind.size > behindMax) await written
  }

  async find(id: string): Promise<DecisionRecord | undefined> {
    return this.#behind.get(id) ?? this.#options.store.findDecision(id)
  }
}
