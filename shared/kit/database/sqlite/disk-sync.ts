export interface DiskWaitsOptions {
  /** Sets whether commits wait for the disk. */
  set: (waits: boolean) => void
  /** Syncs all previous commits to the disk. */
  waitOnce: () => Promise<void>
  /** How long a commit that did not wait may take to reach the disk. Default 1 s. */
  withinMs?: number
}

/** Decides which commits wait for the disk, and syncs the others shortly afterwards. */
export class DiskWaits implements Disposable {
  readonly #options: DiskWaitsOptions
  #waits = true
  #timer: NodeJS.Timeout | undefined
  #disposed = false

  constructor(options: DiskWaitsOptions) {
    this.#options = options
  }

  /** Call this before each transaction. */
  next(waits: boolean): void {
    if (waits === this.#waits) return
    this.#options.set(waits)
    this.#waits = waits
  }

  /** Call this after each commit. */
  committed(): void {
    if (!this.#waits) return this.#follow()
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  [Symbol.dispose](): void {
    this.#disposed = true
    clearTimeout(this.#timer)
  }

  #follow(): void {
    if (this.#disposed) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      // Writes that wait for the disk report the failure; this sync is retried.
      this.#options.waitOnce().catch(() => this.#follow())
    }, this.#options.withinMs ?? 1000).unref()
  }
}
