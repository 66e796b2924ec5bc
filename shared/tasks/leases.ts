import { randomUUID } from 'node:crypto'
import type { Log } from '../process/log.ts'
import type { Store, TaskRecord } from '../store/store.ts'

/** A running task is its holder's for this long; the holder prolongs it while it runs. */
const leaseMs = 30_000
const renewEveryMs = 10_000

export function leaseOf(holder: string): { holder: string; until: number } {
  return { holder, until: Date.now() + leaseMs }
}

/** The leases of this process: its name, and the tasks it keeps. */
export class Leases implements Disposable {
  readonly holder = randomUUID()
  readonly #store: Store
  readonly #log: Log
  readonly #kept = new Set<string>()
  readonly #timer: NodeJS.Timeout

  constructor(store: Store, log: Log) {
    this.#store = store
    this.#log = log
    this.#timer = setInterval(() => void this.#renew(), renewEveryMs)
    this.#timer.unref()
  }

  /** Prolongs the task's lease until disposed. */
  keep(taskId: string): Disposable {
    this.#kept.add(taskId)
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
      await this.#store.renewLeases(this.holder, [...this.#kept], leaseOf(this.holder).until)
    } catch (error) {
      this.#log.error({ err: error }, 'leases could not be renewed')
    }
  }
}
