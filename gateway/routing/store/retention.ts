import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Log } from '@parley/kit/process/log'
import type { RoutingStore } from './routing-store.ts'

export interface RetentionOptions {
  store: Pick<RoutingStore, 'removeOld'>
  log: Log
  /** How long each kind is kept, in milliseconds. */
  keptMs: Parameters<RoutingStore['removeOld']>[0]
  /** With each round. Default: nothing. */
  beside?: () => void
  /** Default a minute. */
  everyMs?: number
  /** Removed in one transaction, of each kind. Default 1000. */
  atOnce?: number
}

/** Removes old routes, decisions and lessons, batch by batch until none is left: what comes in faster must not pile up. */
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

  /** One round; the timer calls it. Never rejects. */
  async clean(): Promise<void> {
    if (this.#cleaning) return
    this.#cleaning = true
    const { store, log, keptMs, beside, atOnce = 1000 } = this.#options
    try {
      beside?.()
      const now = Date.now()
      const { routes, claims, keys, decisions, lessons } = keptMs
      const before = {
        routes: now - routes,
        claims: now - claims,
        keys: now - keys,
        decisions: now - decisions,
        lessons: now - lessons,
      }
      while (!this.#stopped && (await store.removeOld(before, atOnce)) >= atOnce) await nextTurn()
    } catch (error) {
      log.error({ err: error }, 'old routes could not be removed')
    } finally {
      this.#cleaning = false
    }
  }
}
