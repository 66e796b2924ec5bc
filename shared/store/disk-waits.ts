export interface DiskWaitsOptions {
  /** Makes commits wait for the disk from now on, or not. */
  set: (waits: boolean) => void
  /** A commit that waits: those before it are on the disk too then. */
  waitOnce: () => Promise<void>
  /** How long a commit that did not wait may go without one that does. Default 1 s. */
  withinMs?: number
}

/** Which commits wait for the disk; after those that did not, one that does follows. */
export class DiskWaits implements Disposable {
  readonly #options: DiskWaitsOptions
  #waits = true
  #timer: NodeJS.Timeout | undefined

  constructor(options: DiskWaitsOptions) {
    this.#options = options
  }

  /** Before each transaction. */
  next(waits: boolean): void {
    if (waits === this.#waits) return
    this.#options.set(waits)
    this.#waits = waits
  }

  /** After each commit. */
  committed(): void {
    if (!this.#waits) return this.#follow()
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }

  #follow(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      // Whether the storage fails is told to those who wait for it; this one tries again.
      this.#options.waitOnce().catch(() => this.#follow())
    }, this.#options.withinMs ?? 1000).unref()
  }
}
