import type { Slot } from './scheduler.ts'

/**
 * The worker slots of a process. Queued jobs and tasks outside the queue share them. The last slot is
 * reserved for the queue, which always waits for its next job.
 */
export class WorkerSlots {
  readonly #total: number
  readonly #limitQueue: (limit: number, wasFull: boolean) => void
  #own = 0
  #queued = 0
  #idle: (() => void) | undefined

  /**
   * Creates the slots.
   * @param limitQueue called with the current limit for queued jobs, and with whether the previous limit was
   * reached
   */
  constructor(total: number, limitQueue: (limit: number, wasFull: boolean) => void) {
    this.#total = total
    this.#limitQueue = limitQueue
  }

  get used(): number {
    return this.#own + this.#queued
  }

  /** The number of slots that the queue may use. */
  get queueLimit(): number {
    return this.#total - this.#own
  }

  /** Claims a slot for a task outside the queue. Returns undefined if only the reserved slot is left. */
  claim(): Slot | undefined {
    if (this.used >= this.#total - 1) return undefined
    this.#own += 1
    this.#limitQueue(this.queueLimit, false)
    let claimed = true
    const release = () => {
      if (!claimed) return
      claimed = false
      const wasFull = this.#queued >= this.queueLimit
      this.#own -= 1
      this.#limitQueue(this.queueLimit, wasFull)
      this.#notifyIdle()
    }
    return { runs: true, release }
  }

  /** Runs a queued job in a slot. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#queued += 1
    try {
      return await work()
    } finally {
      this.#queued -= 1
      this.#notifyIdle()
    }
  }

  /** Resolves when all slots are free or the signal aborts. */
  async whenIdle(signal: AbortSignal): Promise<void> {
    if (this.used === 0 || signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#idle = resolve
    signal.addEventListener('abort', () => resolve(), { once: true })
    await promise
  }

  #notifyIdle(): void {
    if (this.used === 0) this.#idle?.()
  }
}
