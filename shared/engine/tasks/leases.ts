import { randomUUID } from 'node:crypto'
import type { Log } from '@parley/kit/process/log'
import type { Store, TaskRecord } from '../store/store.ts'

/**
 * The duration of a lease on a running task, and how often its holder renews it. With several processes, the
 * duration is shorter, so that a dead process's tasks are recovered within 10 s. Renewals are frequent enough
 * to survive an event loop that is blocked for 4 s.
 */
export const leaseTimes = {
  alone: { leaseMs: 30_000, renewEveryMs: 10_000 },
  shared: { leaseMs: 6000, renewEveryMs: 1000 },
}
/**
 * If the store does not respond for this long, other processes may also have been unable to renew their
 * leases.
 */
const outageMs = 3000
/** Maximum number of concurrent renewals if the store is slow. */
const renewalsMax = 4

export interface LeasesOptions {
  store: Store
  log: Log
  renewEveryMs?: number
  /** Returns the current time in milliseconds since 1970. Default: the system clock. */
  clock?: () => number
}

/** This process's leases: the name of the holder, and the tasks whose leases it renews. */
export class Leases implements Disposable {
  readonly holder = randomUUID()
  readonly #store: Store
  readonly #log: Log
  readonly #leaseMs: number
  readonly #now: () => number
  readonly #tasks = new Map<string, () => void>()
  readonly #timer: NodeJS.Timeout
  #renewals = 0
  #failing = false
  #disposed = false
  /** When the last answered request was sent, and the time since which there has been no outage. */
  #answeredAt: number
  #stableSince: number

  constructor({ store, log, renewEveryMs, clock = Date.now }: LeasesOptions) {
    const times = store.exclusive ? leaseTimes.alone : leaseTimes.shared
    this.#store = store
    this.#log = log
    this.#now = clock
    this.#leaseMs = times.leaseMs
    this.#answeredAt = this.#stableSince = clock()
    this.#timer = setInterval(() => void this.#renew(), renewEveryMs ?? times.renewEveryMs)
    this.#timer.unref()
  }

  /** Returns a new lease that starts now. */
  lease(): { holder: string; until: number } {
    return { holder: this.holder, until: this.#now() + this.#leaseMs }
  }

  /**
   * Renews the task's lease until disposed. Calls `lost` when another process holds the lease or the task has
   * ended.
   */
  keep(taskId: string, lost: () => void): Disposable {
    this.#tasks.set(taskId, lost)
    return { [Symbol.dispose]: () => this.#tasks.delete(taskId) }
  }

  /**
   * Returns the time until which another process may be running the task, or undefined if none may. If the
   * store is exclusive, the holder of any other lease is dead. Otherwise, an expired lease means a dead
   * holder only if the holder could have renewed it. After a store outage, or after a suspension of this
   * process (and perhaps of others), each holder has the duration of one lease to renew it.
   */
  heldUntil({ lease }: TaskRecord): number | undefined {
    if (lease === undefined || lease.holder === this.holder || this.#store.exclusive) return undefined
    const now = this.#now()
    const stableSince = now - this.#answeredAt > outageMs ? now : this.#stableSince
    const until = Math.max(lease.until, Math.min(stableSince, now) + this.#leaseMs)
    return until > now ? until : undefined
  }

  [Symbol.dispose](): void {
    this.#disposed = true
    clearInterval(this.#timer)
  }

  async #renew(): Promise<void> {
    const shared = !this.#store.exclusive
    if ((this.#tasks.size === 0 && !shared) || this.#renewals >= renewalsMax) return
    this.#renewals += 1
    try {
      const { holder, until } = this.lease()
      const sentAt = this.#now()
      if (this.#tasks.size === 0) await this.#store.ping()
      else {
        const lost = await this.#store.renewLeases(holder, [...this.#tasks.keys()], until)
        for (const taskId of lost) this.#tasks.get(taskId)?.()
      }
      this.#recordAnswer(sentAt)
      this.#failing = false
    } catch (error) {
      if (!this.#failing && !this.#disposed) this.#log.error({ err: error }, 'could not renew task leases')
      this.#failing = true
    } finally {
      this.#renewals -= 1
    }
  }

  #recordAnswer(sentAt: number): void {
    const now = this.#now()
    if (now - this.#answeredAt > outageMs) this.#stableSince = now
    this.#answeredAt = Math.max(sentAt, this.#answeredAt)
  }
}
