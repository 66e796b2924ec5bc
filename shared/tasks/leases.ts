import { randomUUID } from 'node:crypto'
import type { Log } from '../process/log.ts'
import type { Store, TaskRecord } from '../store/store.ts'

/**
 * A running task is its holder's for this long; the holder prolongs it while it runs. Where other processes wait to take
 * over, it is shorter: the tasks of one that died come back within 10 s.
 */
const [aloneMs, sharedMs] = [30_000, 7500]

export interface LeasesOptions {
  store: Store
  log: Log
  /** Default: a third of a lease. */
  renewEveryMs?: number
}

/** The leases of this process: its name, and the tasks it keeps. */
export class Leases implements Disposable {
  readonly holder = randomUUID()
  readonly #store: Store
  readonly #log: Log
  readonly #leaseMs: number
  readonly #kept = new Map<string, () => void>()
  readonly #timer: NodeJS.Timeout

  constructor({ store, log, renewEveryMs }: LeasesOptions) {
    this.#store = store
    this.#log = log
    this.#leaseMs = store.exclusive ? aloneMs : sharedMs
    this.#timer = setInterval(() => void this.#renew(), renewEveryMs ?? this.#leaseMs / 3)
    this.#timer.unref()
  }

  /** One that begins now. */
  lease(): { holder: string; until: number } {
    return { holder: this.holder, until: Date.now() + this.#leaseMs }
  }

  /** Prolongs the task's lease until disposed. `lost` is told when another has the task, or it has ended. */
  keep(taskId: string, lost: () => void): Disposable {
    this.#kept.set(taskId, lost)
    return { [Symbol.dispose]: () => this.#kept.delete(taskId) }
  }

  /** True while another process runs the task. In a store that is ours alone, a lease of another is a dead one. */
  heldByAnother({ lease }: TaskRecord): boolean {
    if (lease === undefined || lease.holder === this.holder || this.#store.exclusive) return false
    return lease.until > Date.now()
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  async #renew(): Promise<void> {
    if (this.#kept.size === 0) return
    try {
      const { holder, until } = this.lease()
      const lost = await this.#store.renewLeases(holder, [...this.#kept.keys()], until)
      for (const taskId of lost) this.#kept.get(taskId)?.()
    } catch (error) {
      this.#log.error({ err: error }, 'leases could not be renewed')
    }
  }
}
