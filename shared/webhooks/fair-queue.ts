import { OwnerQueues } from '../scheduler/owner-queues.ts'
import { HostLine, type Standing } from './host-line.ts'

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
  /** Deliveries under way in all, those between two attempts included. Default 1024. */
  totalMax?: number
  /** To one host. Default 32; to one whose last delivery failed: a quarter; to one that had none yet: a sixteenth. */
  perHostMax?: number
}

const shares: Record<Standing, number> = { well: 1, sick: 1 / 4, new: 1 / 16 }

const nameOf = <T extends Waiting>(item: T) => ({ owner: item.task.owner, key: item })

/**
 * Whose event is read and handed to the deliverer next (which bounds the posts; here the bound is on what they hold): hosts
 * take turns, and so do the owners of tasks within a host, so that a long line of one delays no other; hosts that fail or hang get
 * few of the places, so that they cannot take them all.
 */
export class FairQueue<T extends Waiting> {
  readonly #perHostMax: number
  readonly #line: HostLine
  readonly #hosts = new Map<string, Host<T>>()

  constructor({ totalMax = 1024, perHostMax = 32 }: FairQueueLimits = {}) {
    this.#perHostMax = perHostMax
    this.#line = new HostLine(totalMax)
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
    const name = this.#line.next()
    const host = name === undefined ? undefined : this.#hosts.get(name)
    const item = host?.waiting.take()
    if (name === undefined || host === undefined || item === undefined) return undefined
    host.underWay += 1
    this.#line.begin(name)
    // At the end of the round.
    this.#place(name, host)
    return item
  }

  /** @param name that of `take`; @param healthy undefined when nothing was learned about it */
  done(name: string, healthy: boolean | undefined): void {
    const host = this.#hosts.get(name)
    if (host === undefined) return
    host.underWay -= 1
    this.#line.end(name, healthy)
    this.#place(name, host)
  }

  /** The last delivery to the host did not fail. */
  isWell(name: string): boolean {
    return this.#line.standingOf(name) === 'well'
  }

  #place(name: string, host: Host<T>): void {
    const max = Math.max(1, Math.floor(this.#perHostMax * shares[this.#line.standingOf(name)]))
    this.#line.place(name, host.waiting.size > 0 && host.underWay < max)
    if (host.waiting.size === 0 && host.underWay === 0) this.#hosts.delete(name)
  }
}
