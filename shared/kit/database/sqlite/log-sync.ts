export interface LogSyncOptions {
  /** Syncs the write-ahead log to the disk. */
  sync: () => Promise<void>
  /** Moves the whole log into the database file, syncs that file and empties the log. Throws if it cannot. */
  checkpoint: () => void
  /** Closes the log. Called once, when no sync runs. */
  close?: () => Promise<void>
  /** How long a commit that does not wait may take to reach the disk. Default 1 s. */
  withinMs?: number
}

/**
 * Brings commits to the disk. SQLite itself syncs the log only at checkpoints (`synchronous=NORMAL`), because it would
 * block the event loop. The log is written in order, so a sync covers every earlier commit.
 */
export class LogSync implements AsyncDisposable {
  readonly #options: LogSyncOptions
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> = Promise.resolve()
  #hasFailed = false
  #disposed = false

  constructor(options: LogSyncOptions) {
    this.#options = options
  }

  /**
   * Resolves once all commits so far are on the disk. After a failed sync, the kernel may have dropped the pages that it
   * could not write, so that another sync would succeed without them. The next sync is therefore a checkpoint, which
   * writes the pages again.
   */
  now(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    // A sync that runs already may have begun before the last commit. Only one runs at a time, so that each knows whether
    // the one before it failed.
    const run = this.#running.then(() => this.#run())
    this.#running = run.catch(() => {})
    return run
  }

  /** Call this after a commit that does not wait for the disk. */
  soon(): void {
    if (this.#disposed) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      // Writes that wait for the disk report the failure; this sync is retried.
      this.now().catch(() => this.soon())
    }, this.#options.withinMs ?? 1000).unref()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true
    clearTimeout(this.#timer)
    await this.#running
    await this.#options.close?.()
  }

  async #run(): Promise<void> {
    if (this.#hasFailed) {
      this.#options.checkpoint()
      this.#hasFailed = false
      return
    }
    try {
      await this.#options.sync()
    } catch (error) {
      this.#hasFailed = true
      throw error
    }
  }
}
