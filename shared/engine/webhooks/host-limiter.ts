import { OwnerQueues } from '../queue/owner-queues.ts'
import { HostScheduler } from './host-scheduler.ts'

export interface HostLimiterOptions {
  /** Maximum number of concurrent requests to one origin. Default 8. */
  perHostMax?: number
  /**
   * Maximum number of concurrent requests in total. Each owner may have as many as there are free slots.
   * Default 256.
   */
  totalMax?: number
}

/**
 * Releases a request's slot. Further calls do nothing. `answered` is whether the host responded, or undefined
 * if the request was aborted.
 */
export type Release = (answered: boolean | undefined) => void

interface Waiter {
  owner: string
  grant: () => void
}

interface Host {
  inFlight: number
  limit: number
  waiting: OwnerQueues<Waiter>
}

const nameOf = (waiter: Waiter) => ({ owner: waiter.owner, key: waiter })

/** The maximum number of idle hosts whose reduced limit is remembered. */
const reducedLimitsMax = 10_000

/**
 * An adaptive concurrency limit for each host. Owners take turns within the total limit, regardless of how
 * many hosts their receivers use. If a host does not respond, its limit is halved, down to one; the limit
 * grows with each response. A new host starts with a limit of one. New and failing hosts together leave slots
 * for the others. The caller limits the number of waiting deliveries.
 */
export class HostLimiter {
  readonly #perHostMax: number
  readonly #hosts = new Map<string, Host>()
  /** The limits of hosts without active requests, oldest first. */
  readonly #reducedLimits = new Map<string, number>()
  /** The waiting owners, and those of their hosts that are below the limit. */
  readonly #scheduler: HostScheduler

  constructor(options: HostLimiterOptions = {}) {
    this.#perHostMax = options.perHostMax ?? 8
    this.#scheduler = new HostScheduler(options.totalMax ?? 256)
  }

  get inFlight(): number {
    return this.#scheduler.inFlight
  }

  /**
   * Resolves when the request may start.
   * @throws the signal's reason
   */
  async acquire(origin: string, signal: AbortSignal, owner = ''): Promise<Release> {
    signal.throwIfAborted()
    const host = this.#hostOf(origin)
    if (this.#canStart(origin, host, owner)) return this.#grant(origin, host, owner)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter = { owner, grant: resolve }
    const onAbort = () => {
      host.waiting.remove(waiter)
      this.#update(origin, host)
      reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    host.waiting.add(waiter)
    this.#update(origin, host)
    this.#startWaiting()
    try {
      await promise
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
    return this.#releaseOf(origin, host, owner)
  }

  /**
   * Call this only for a host without waiting requests. Requests for other hosts wait for their host or for
   * the total limit; in the latter case, no slot is free for this host either.
   */
  #canStart(origin: string, host: Host, owner: string): boolean {
    return host.waiting.size === 0 && host.inFlight < host.limit && this.#scheduler.canStart(origin, owner)
  }

  #grant(origin: string, host: Host, owner: string): Release {
    host.inFlight += 1
    this.#scheduler.start(origin, owner)
    return this.#releaseOf(origin, host, owner)
  }

  #releaseOf(origin: string, host: Host, owner: string): Release {
    let released = false
    return (answered) => {
      if (released) return
      released = true
      if (answered === true) host.limit = Math.min(this.#perHostMax, host.limit + 1)
      if (answered === false) host.limit = Math.max(1, Math.floor(host.limit / 2))
      host.inFlight -= 1
      this.#scheduler.finish(origin, owner, answered)
      this.#update(origin, host)
      this.#startWaiting()
    }
  }

  #startWaiting(): void {
    for (let next = this.#scheduler.next(); next !== undefined; next = this.#scheduler.next()) {
      const host = this.#hosts.get(next.host)
      const waiter = host?.waiting.takeOf(next.owner)
      if (host === undefined || waiter === undefined) continue
      host.inFlight += 1
      this.#scheduler.start(next.host, next.owner)
      this.#update(next.host, host)
      waiter.grant()
    }
  }

  #hostOf(origin: string): Host {
    const existing = this.#hosts.get(origin)
    if (existing !== undefined) return existing
    const host = {
      inFlight: 0,
      limit:
        this.#reducedLimits.get(origin) ??
        (this.#scheduler.healthOf(origin) === 'healthy' ? this.#perHostMax : 1),
      waiting: new OwnerQueues<Waiter>(nameOf),
    }
    this.#reducedLimits.delete(origin)
    this.#hosts.set(origin, host)
    return host
  }

  /** Updates the host in the scheduler, and forgets the host if it is idle. */
  #update(origin: string, host: Host): void {
    this.#scheduler.setReady(origin, host.inFlight < host.limit ? host.waiting.owners() : [])
    if (host.waiting.size > 0 || host.inFlight > 0) return
    this.#hosts.delete(origin)
    if (host.limit < this.#perHostMax) this.#reducedLimits.set(origin, host.limit)
    const [oldest] = this.#reducedLimits.keys()
    if (this.#reducedLimits.size > reducedLimitsMax && oldest !== undefined)
      this.#reducedLimits.delete(oldest)
  }
}
