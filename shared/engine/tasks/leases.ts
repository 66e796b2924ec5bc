import { randomUUID } from 'node:crypto'
import type { Log } from '@parley/kit/process/log'
import type { Store, TaskRecord } from '../store/store.ts'

/**
 * A running task is its holder's for so long; the holder prolongs it while it runs. Where other processes wait to take over,
 * it is shorter: the tasks of one that died come back within 10 s. It is prolonged often enough that a process whose event
 * loop is held up for 4 s keeps what it has.
 */
export const leaseTimes = {
  alone: { leaseMs: 30_000, renewEveryMs: 10_000 },
  shared: { leaseMs: 6000, renewEveryMs: 1000 },
}
/** A longer time without an answer of the storage may have kept others from prolonging theirs. */
const breakMs = 3000
/** Attempts to prolong at the same time, where the storage is slow. */
const underWayMax = 4

export interface LeasesOptions {
  store: Store
  log: Log
  renewEveryMs?: number
  /** Milliseconds since 1970. Default: the system's. */
  clock?: () => number
}

/** The leases of this process: its name, and the tasks it keeps. */
export class Leases implements Disposable {
  readonly holder = randomUUID()
  readonly #store: Store
  readonly #log: Log
  readonly #leaseMs: number
  readonly #now: () => number
  readonly #kept = new Map<string, () => void>()
  readonly #timer: NodeJS.Timeout
  #underWay = 0
  #failing = false
  #disposed = false
  /** When the newest question was asked that the storage answered, and since when there was no break. */
  #answeredAt: number
  #steadySince: number

  constructor({ store, log, renewEveryMs, clock = Date.now }: LeasesOptions) {
    const times = store.exclusive ? leaseTimes.alone : leaseTimes.shared
    this.#store = store
    this.#log = log
    this.#now = clock
    this.#leaseMs = times.leaseMs
    this.#answeredAt = this.#steadySince = clock()
    this.#timer = setInterval(() => void this.#renew(), renewEveryMs ?? times.renewEveryMs)
    this.#timer.unref()
  }

  /** One that begins now. */
  lease(): { holder: string; until: number } {
    return { holder: this.holder, until: this.#now() + this.#leaseMs }
  }

  /** Prolongs the task's lease until disposed. `lost` is told when another has the task, or it has ended. */
  keep(taskId: string, lost: () => void): Disposable {
    this.#kept.set(taskId, lost)
    return { [Symbol.dispose]: () => this.#kept.delete(taskId) }
  }

  /**
   * While another process may be running the task: until when. In a store that is ours alone, a lease of another is a dead one.
   * Elsewhere one that has ended stands for a process that died only where it could have been prolonged: after an outage of
   * the storage, or a time in which this process was frozen (and perhaps the others too), each has one lease's time to do so.
   */
  heldUntil({ lease }: TaskRecord): number | undefined {
    if (lease === undefined || lease.holder === this.holder || this.#store.exclusive) return undefined
    const now = this.#now()
    const steadySince = now - this.#answeredAt > breakMs ? now : this.#steadySince
    const until = Math.max(lease.until, Math.min(steadySince, now) + this.#leaseMs)
    return until > now ? until : undefined
  }

  [Symbol.dispose](): void {
    this.#disposed = true
    clearInterval(this.#timer)
  }

  async #renew(): Promise<void> {
    const shared = !this.#store.exclusive
    if ((this.#kept.size === 0 && !shared) || this.#underWay >= underWayMax) return
    this.#underWay += 1
    try {
      const { holder, until } = this.lease()
      const askedAt = this.#now()
      if (this.#kept.size === 0) await this.#store.ping()
      else {
        const lost = await this.#store.renewLeases(holder, [...this.#kept.keys()], until)
        for (const taskId of lost) this.#kept.get(taskId)?.()
      }
      this.#answered(askedAt)
      this.#failing = false
    } catch (error) {
      if (!this.#failing && !this.#disposed) this.#log.error({ err: error }, 'leases could not be renewed')
      this.#failing = true
    } finally {
      this.#underWay -= 1
    }
  }

  #answered(askedAt: number): void {
    const now = this.#now()
    if (now - this.#answeredAt > breakMs) this.#steadySince = now
    this.#answeredAt = Math.max(askedAt, this.#answeredAt)
  }
}
