export interface DiskWaitsOptions {
  /** Makes commits wait for the disk from now on, or not. */
  set: (waits: boolean) => void
  /** Brings all commits so far to the disk. */
  waitOnce: () => Promise<void>
  /** How long a commit that did not wait may not be on the disk. Default 1 s. */
  withinMs?: number
}

/** Which commits wait for the disk; those that did not are brought there a moment later. */
export class DiskWaits implements Disposable {
  readonly #options: DiskWaitsOptions
  #waits = true
  #timer: NodeJS.Timeout | undefined
  #disposed = false

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
    this.#disposed = true
    clearTimeout(this.#timer)
  }

  #follow(): void {
    if (this.#disposed) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      // Whether the storage fails is told to those who wait for it; this one tries again.
      this.#options.waitOnce().catch(() => this.#follow())
    }, this.#options.withinMs ?? 1000).unref()
  }
}
