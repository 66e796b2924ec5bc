import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Log } from '@parley/kit/process/log'
import type { RoutingStore } from './routing-store.ts'

export interface RetentionOptions {
  store: Pick<RoutingStore, 'removeOld'>
  log: Log
  /** Retention time of each kind in milliseconds. */
  keptMs: Parameters<RoutingStore['removeOld']>[0]
  /** Called in every round. */
  onRound?: () => void
  /** Default 60,000. */
  everyMs?: number
  /** Number of entries of each kind per transaction. Default 1000. */
  batchSize?: number
}

/** Periodically removes expired routes, decisions, training examples and sentence vectors in batches until none is left. */
export class Retention implements Disposable {
  readonly #options: RetentionOptions
  readonly #timer: NodeJS.Timeout
  #cleaning = false
  #stopped = false

  constructor(options: RetentionOptions) {
    this.#options = options
    this.#timer = setInterval(() => void this.clean(), options.everyMs ?? 60_000).unref()
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#stopped = true
  }

  /** Runs one round. Never rejects. */
  async clean(): Promise<void> {
    if (this.#cleaning) return
    this.#cleaning = true
    const { store, log, keptMs, onRound, batchSize = 1000 } = this.#options
    try {
      onRound?.()
      const now = Date.now()
      const { routes, claims, keys, decisions, trainingExamples, sentenceVectors } = keptMs
      const before = {
        routes: now - routes,
        claims: now - claims,
        keys: now - keys,
        decisions: now - decisions,
        trainingExamples: now - trainingExamples,
        sentenceVectors: now - sentenceVectors,
      }
      while (!this.#stopped && (await store.removeOld(before, batchSize)) >= batchSize) await nextTurn()
    } catch (error) {
      log.error({ err: error }, 'failed to remove expired routes')
    } finally {
      this.#cleaning = false
    }
  }
}
