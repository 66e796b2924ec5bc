import { OwnerQueues } from '../queue/owner-queues.ts'
import { HostScheduler } from './host-scheduler.ts'

export interface HostLimiterOptions {
  /** Posts to one origin at a time. Default 8. */
  perHostMax?: number
  /** Posts in all at a time; of one owner at most as many as are free. Default 256. */
  totalMax?: number
}

/** The right to one post. Give it back once, with whether the host answered; undefined: it was stopped before. */
export type Permit = (answered: boolean | undefined) => void

interface Waiter {
  owner: string
  begin: () => void
}

interface Host {
  underWay: number
  limit: number
  waiting: OwnerQueues<Waiter>
}

const nameOf = (waiter: Waiter) => ({ owner: waiter.owner, key: waiter })

/** Hosts that do not answer and whose smaller share is remembered while nothing goes to them. */
const slowMax = 10_000

/**
 * Who may post now. Owners take turns for what there is in all, on however many hosts their receivers are. A host that does not
 * answer gets fewer turns at a time, down to one, and gets them back by answering; one that nothing is known of begins with one;
 * all of those together leave room for the others, however many they are. The caller bounds the number of waiting deliveries.
 */
export class HostLimiter {
  readonly #perHostMax: number
  readonly #hosts = new Map<string, Host>()
  /** Shares of hosts that have nothing under way now, oldest first. */
  readonly #slow = new Map<string, number>()
  /** Owners that wait, and their hosts with room for one. */
  readonly #line: HostScheduler

  constructor(options: HostLimiterOptions = {}) {
    this.#perHostMax = options.perHostMax ?? 8
    this.#line = new HostScheduler(options.totalMax ?? 256)
  }

  get underWay(): number {
    return this.#line.underWay
  }

  /** @throws the signal's reason */
  async take(origin: string, signal: AbortSignal, owner = ''): Promise<Permit> {
    signal.throwIfAborted()
    const host = this.#hostOf(origin)
    if (this.#isFree(origin, host, owner)) return this.#begin(origin, host, owner)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter = { owner, begin: resolve }
    const leave = () => {
      host.waiting.remove(waiter)
      this.#settle(origin, host)
      reject(signal.reason as Error)
    }
    signal.addEventListener('abort', leave, { once: true })
    host.waiting.add(waiter)
    this.#settle(origin, host)
    this.#serve()
    try {
      await promise
    } finally {
      signal.removeEventListener('abort', leave)
    }
    return this.#turnOf(origin, host, owner)
  }

  /** Whoever waits elsewhere waits for a turn at that host, or for a place in all, of which none would be left. */
  #isFree(origin: string, host: Host, owner: string): boolean {
    return host.waiting.size === 0 && host.underWay < host.limit && this.#line.hasRoom(origin, owner)
  }

  #begin(origin: string, host: Host, owner: string): Permit {
    host.underWay += 1
    this.#line.begin(origin, owner)
    return this.#turnOf(origin, host, owner)
  }

  #turnOf(origin: string, host: Host, owner: string): Permit {
    let over = false
    return (answered) => {
      if (over) return
      over = true
      if (answered === true) host.limit = Math.min(this.#perHostMax, host.limit + 1)
      if (answered === false) host.limit = Math.max(1, Math.floor(host.limit / 2))
      host.underWay -= 1
      this.#line.end(origin, owner, answered)
      this.#settle(origin, host)
      this.#serve()
    }
  }

  #serve(): void {
    for (let next = this.#line.next(); next !== undefined; next = this.#line.next()) {
      const host = this.#hosts.get(next.host)
      const waiter = host?.waiting.takeOf(next.owner)
      if (host === undefined || waiter === undefined) continue
      host.underWay += 1
      this.#line.begin(next.host, next.owner)
      // At the end of the line again.
      this.#settle(next.host, host)
      waiter.begin()
    }
  }

  #hostOf(origin: string): Host {
    const known = this.#hosts.get(origin)
    if (known !== undefined) return known
    const host = {
      underWay: 0,
      limit: this.#slow.get(origin) ?? (this.#line.standingOf(origin) === 'well' ? this.#perHostMax : 1),
      waiting: new OwnerQueues<Waiter>(nameOf),
    }
    this.#slow.delete(origin)
    this.#hosts.set(origin, host)
    return host
  }

  /** Puts the host into the line or takes it out; forgets one that has nothing to do. */
  #settle(origin: string, host: Host): void {
    this.#line.place(origin, host.underWay < host.limit ? host.waiting.owners() : [])
    if (host.waiting.size > 0 || host.underWay > 0) return
    this.#hosts.delete(origin)
    if (host.limit < this.#perHostMax) this.#slow.set(origin, host.limit)
    const [oldest] = this.#slow.keys()
    if (this.#slow.size > slowMax && oldest !== undefined) this.#slow.delete(oldest)
  }
}
