import { OwnerQueues } from '../queue/owner-queues.ts'
import { type HostHealth, HostScheduler } from './host-scheduler.ts'

/** What waits for its turn at a host. */
export interface Waiting {
  host: string
  task: { owner: string }
}

interface Host<T> {
  waiting: OwnerQueues<T>
  underWay: number
}

export interface FairQueueLimits {
  /** Deliveries under way in all, those between two attempts included; of one owner at most as many as are free. Default 1024. */
  totalMax?: number
  /** To one host. Default 32; to one whose last delivery failed: a quarter; to one that had none yet: a sixteenth. */
  perHostMax?: number
}

const shares: Record<HostHealth, number> = { well: 1, sick: 1 / 4, new: 1 / 16 }

const nameOf = <T extends Waiting>(item: T) => ({ owner: item.task.owner, key: item })

/**
 * Whose event is read and handed to the deliverer next (which bounds the posts; here the bound is on what they hold): owners of
 * tasks take turns, on however many hosts their receivers are; hosts that fail or hang get few of the places, so that they cannot
 * take them all, and each owner leaves some to the others.
 */
export class FairQueue<T extends Waiting> {
  readonly #perHostMax: number
  readonly #line: HostScheduler
  readonly #hosts = new Map<string, Host<T>>()

  constructor({ totalMax = 1024, perHostMax = 32 }: FairQueueLimits = {}) {
    this.#perHostMax = perHostMax
    this.#line = new HostScheduler(totalMax)
  }

  add(item: T): void {
    const host = this.#hosts.get(item.host) ?? { waiting: new OwnerQueues<T>(nameOf), underWay: 0 }
    this.#hosts.set(item.host, host)
    host.waiting.add(item)
    this.#place(item.host, host)
  }

  remove(item: T): void {
    const host = this.#hosts.get(item.host)
    if (host?.waiting.remove(item) === true) this.#place(item.host, host)
  }

  /** The next one, which counts as under way from now on; undefined when nothing may begin. */
  take(): T | undefined {
    const next = this.#line.next()
    const host = next === undefined ? undefined : this.#hosts.get(next.host)
    const item = next === undefined ? undefined : host?.waiting.takeOf(next.owner)
    if (next === undefined || host === undefined || item === undefined) return undefined
    host.underWay += 1
    this.#line.begin(next.host, next.owner)
    // At the end of the round.
    this.#place(next.host, host)
    return item
  }

  /** @param host that of the item when it was taken; @param healthy undefined when nothing was learned about it */
  done(host: string, owner: string, healthy: boolean | undefined): void {
    const its = this.#hosts.get(host)
    if (its === undefined) return
    its.underWay -= 1
    this.#line.end(host, owner, healthy)
    this.#place(host, its)
  }

  /** The last delivery to the host did not fail. */
  isWell(name: string): boolean {
    return this.#line.standingOf(name) === 'well'
  }

  #place(name: string, host: Host<T>): void {
    const max = Math.max(1, Math.floor(this.#perHostMax * shares[this.#line.standingOf(name)]))
    this.#line.place(name, host.underWay < max ? host.waiting.owners() : [])
    if (host.waiting.size === 0 && host.underWay === 0) this.#hosts.delete(name)
  }
}
