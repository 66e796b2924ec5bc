import { OwnerQueues } from '../queue/owner-queues.ts'
import { type HostHealth, HostScheduler } from './host-scheduler.ts'

/** A queue that is waiting for one of its host's delivery slots. */
export interface QueueItem {
  host: string
  task: { owner: string }
}

interface Host<T> {
  waiting: OwnerQueues<T>
  inFlight: number
}

export interface FairQueueLimits {
  /**
   * Maximum number of concurrent deliveries, including those waiting for a retry. Each owner has at most as
   * many as there are free slots. Default 1024.
   */
  totalMax?: number
  /**
   * Maximum number of concurrent deliveries to one host. Default 32. The limit drops to a quarter if the
   * last delivery failed, and to a sixteenth if there has been no delivery.
   */
  perHostMax?: number
}

const shares: Record<HostHealth, number> = { healthy: 1, failing: 1 / 4, new: 1 / 16 }

const nameOf = <T extends QueueItem>(item: T) => ({ owner: item.task.owner, key: item })

/**
 * Selects the queue whose event is loaded and delivered next. It limits the resources that waiting deliveries
 * hold, while the deliverer limits the requests. Owners take turns, regardless of how many hosts their
 * receivers use. Failing or hanging hosts get few slots, and each owner leaves slots for the others.
 */
export class FairQueue<T extends QueueItem> {
  readonly #perHostMax: number
  readonly #scheduler: HostScheduler
  readonly #hosts = new Map<string, Host<T>>()

  constructor({ totalMax = 1024, perHostMax = 32 }: FairQueueLimits = {}) {
    this.#perHostMax = perHostMax
    this.#scheduler = new HostScheduler(totalMax)
  }

  add(item: T): void {
    const host = this.#hosts.get(item.host) ?? { waiting: new OwnerQueues<T>(nameOf), inFlight: 0 }
    this.#hosts.set(item.host, host)
    host.waiting.add(item)
    this.#update(item.host, host)
  }

  remove(item: T): void {
    const host = this.#hosts.get(item.host)
    if (host?.waiting.remove(item) === true) this.#update(item.host, host)
  }

  /** Returns the next item and counts it as active. Returns undefined if no item may start. */
  take(): T | undefined {
    const next = this.#scheduler.next()
    const host = next === undefined ? undefined : this.#hosts.get(next.host)
    const item = next === undefined ? undefined : host?.waiting.takeOf(next.owner)
    if (next === undefined || host === undefined || item === undefined) return undefined
    host.inFlight += 1
    this.#scheduler.start(next.host, next.owner)
    this.#update(next.host, host)
    return item
  }

  /**
   * Ends an active delivery.
   * @param host the item's host when it was taken
   * @param healthy undefined if the delivery says nothing about the host
   */
  done(host: string, owner: string, healthy: boolean | undefined): void {
    const entry = this.#hosts.get(host)
    if (entry === undefined) return
    entry.inFlight -= 1
    this.#scheduler.finish(host, owner, healthy)
    this.#update(host, entry)
  }

  /** Whether the last delivery to the host succeeded. */
  isHealthy(name: string): boolean {
    return this.#scheduler.healthOf(name) === 'healthy'
  }

  #update(name: string, host: Host<T>): void {
    const max = Math.max(1, Math.floor(this.#perHostMax * shares[this.#scheduler.healthOf(name)]))
    this.#scheduler.setReady(name, host.inFlight < max ? host.waiting.owners() : [])
    if (host.waiting.size === 0 && host.inFlight === 0) this.#hosts.delete(name)
  }
}
