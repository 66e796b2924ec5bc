import type { Log } from '@parley/kit/process/log'

export interface BatchedWritesOptions<T> {
  /** Writes a batch, which may contain items that an earlier call has written. */
  write: (batch: readonly T[]) => Promise<void>
  /** Called before each flush. Must not throw. */
  beforeFlush?: () => void
  /** Removes old items. Called once per minute. */
  clean: () => Promise<void>
  /** Name of the items in the log. */
  what: string
  log: Log
  /** Default 1 s. */
  everyMs?: number
}

/** Items that wait for the storage. Further ones are discarded. */
const queueMax = 5000
const batchSize = 500
const cleanEveryMs = 60_000
/** After so many failures, the items are written one by one, because the storage may refuse one of them only. */
const failuresMax = 3
/** After so many failures in succession, the storage is considered unavailable. */
const failedMax = 20

/**
 * Writes items in the background, in order. While the storage fails, they wait in a bounded queue. An item that the storage
 * refuses while it stores a later one is dropped, and the log says so.
 */
export class BatchedWrites<T> implements AsyncDisposable {
  readonly #options: BatchedWritesOptions<T>
  readonly #timers: NodeJS.Timeout[]
  readonly #queue: T[] = []
  #writing: Promise<void> | undefined
  #failures = 0
  #discarded = 0

  constructor(options: BatchedWritesOptions<T>) {
    this.#options = options
    this.#timers = [
      setInterval(() => void this.flush(), options.everyMs ?? 1000).unref(),
      setInterval(() => void this.clean(), cleanEveryMs).unref(),
    ]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    await this.flush()
  }

  add(item: T): void {
    if (this.#queue.length < queueMax) this.#queue.push(item)
    else this.#discarded += 1
  }

  /** Writes the queued items. Never rejects. */
  async flush(): Promise<void> {
    this.#options.beforeFlush?.()
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined
    })
    await this.#writing
  }

  async #write(): Promise<void> {
    const { write, log, what } = this.#options
    try {
      while (this.#queue.length > 0) {
        const batch = this.#queue.slice(0, batchSize)
        await write(batch)
        this.#queue.splice(0, batch.length)
      }
      if (this.#failures > 0) log.info({ discarded: this.#discarded }, `${what} can be stored again`)
      this.#failures = 0
      this.#discarded = 0
    } catch (error) {
      this.#failures += 1
      if (this.#failures === 1) log.warn({ err: error }, `${what} could not be stored; the write is repeated`)
      if (this.#failures >= failuresMax) await this.#writeOneByOne()
    }
  }

  /**
   * Writes a batch item by item. An item is dropped if it fails before and after a later item is stored. Items that fail
   * without a later success stay in the queue, because the storage may accept nothing new, such as on a full disk.
   */
  async #writeOneByOne(): Promise<void> {
    const { log, what } = this.#options
    const batch = this.#queue.splice(0, batchSize)
    let failed: T[] = []
    let written = 0
    for (const item of batch) {
      if (failed.length >= failedMax) break
      written += 1
      if ((await this.#store(item)) !== undefined) {
        failed.push(item)
        continue
      }
      for (const earlier of failed) {
        const error = await this.#store(earlier)
        if (error !== undefined)
          log.error({ err: error }, `an entry of ${what} was dropped, because the storage refuses it`)
      }
      failed = []
    }
    this.#queue.unshift(...failed, ...batch.slice(written))
  }

  /** Returns the error of the storage. */
  async #store(item: T): Promise<unknown> {
    try {
      await this.#options.write([item])
      return undefined
    } catch (error) {
      return error ?? new Error('The storage failed without an error')
    }
  }

  /** Removes old items. Never rejects. */
  async clean(): Promise<void> {
    const { clean, log, what } = this.#options
    await clean().catch((error: unknown) => {
      log.warn({ err: error }, `old entries of ${what} could not be removed`)
    })
  }
}
