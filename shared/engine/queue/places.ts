import type { Slot } from './scheduler.ts'

/**
 * The places of a process that runs what a queue brings, unasked, and what it takes by itself. Together they are never more
 * than there are; the last place is the queue's, whose next job is always waited for.
 */
export class Places {
  readonly #total: number
  readonly #limitQueue: (limit: number, wasFull: boolean) => void
  #own = 0
  #queued = 0
  #idle: (() => void) | undefined

  /** @param limitQueue told how many the queue may have now, and whether it had all that it could have until now */
  constructor(total: number, limitQueue: (limit: number, wasFull: boolean) => void) {
    this.#total = total
    this.#limitQueue = limitQueue
  }

  get taken(): number {
    return this.#own + this.#queued
  }

  /** How many the queue may have. */
  get ofQueue(): number {
    return this.#total - this.#own
  }

  /** One to be used without the queue; undefined when only the queue's is left. */
  claim(): Slot | undefined {
    if (this.taken >= this.#total - 1) return undefined
    this.#own += 1
    this.#limitQueue(this.ofQueue, false)
    let held = true
    const release = () => {
      if (!held) return
      held = false
      const wasFull = this.#queued >= this.ofQueue
      this.#own -= 1
      this.#limitQueue(this.ofQueue, wasFull)
      this.#left()
    }
    return { runs: true, release }
  }

  /** While a job of the queue runs. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#queued += 1
    try {
      return await work()
    } finally {
      this.#queued -= 1
      this.#left()
    }
  }

  /** Until nothing runs any more, or the signal aborts. */
  async empty(signal: AbortSignal): Promise<void> {
    if (this.taken === 0 || signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#idle = resolve
    signal.addEventListener('abort', () => resolve(), { once: true })
    await promise
  }

  #left(): void {
    if (this.taken === 0) this.#idle?.()
  }
}
