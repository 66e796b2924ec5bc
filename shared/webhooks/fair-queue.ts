/** What waits for its turn at a host. */
export interface Waiting {
  host: string
}

interface Host<T> {
  /** First come, first served. */
  waiting: Set<T>
  underWay: number
  failures: number
}

export interface FairQueueLimits {
  /** Deliveries under way in all, those between two attempts included. Default 1024. */
  totalMax?: number
  /** To one host. Default 32; to one whose last delivery failed: a quarter. */
  perHostMax?: number
  /** To all hosts whose last delivery failed. Default half of `totalMax`. */
  sickMax?: number
}

/** Failing hosts that are remembered although nothing waits for them. */
const rememberedMax = 1000

/**
 * Whose event is read and handed to the deliverer next (which bounds the posts; here the bound is on what they hold): hosts take turns, so that a long line for one delays no other; hosts that fail or hang get few of the
 * places, so that they cannot take them all.
 */
export class FairQueue<T extends Waiting> {
  readonly #limits: Required<FairQueueLimits>
  readonly #hosts = new Map<string, Host<T>>()
  /** Hosts that something may be sent to now, next first. */
  readonly #well = new Set<string>()
  readonly #sick = new Set<string>()
  readonly #idleSick = new Set<string>()
  #underWay = 0
  #sickUnderWay = 0

  constructor({ totalMax = 1024, perHostMax = 32, sickMax = Math.ceil(totalMax / 2) }: FairQueueLimits = {}) {
    this.#limits = { totalMax, perHostMax, sickMax }
  }

  add(item: T): void {
    const host = this.#hosts.get(item.host) ?? { waiting: new Set<T>(), underWay: 0, failures: 0 }
    this.#hosts.set(item.host, host)
    host.waiting.add(item)
    this.#place(item.host, host)
  }

  remove(item: T): void {
    const host = this.#hosts.get(item.host)
    if (host?.waiting.delete(item) === true) this.#place(item.host, host)
  }

  /** The next one, which counts as under way from now on; undefined when nothing may begin. */
  take(): T | undefined {
    if (this.#underWay >= this.#limits.totalMax) return undefined
    const [well] = this.#well
    const [sick] = this.#sickUnderWay < this.#limits.sickMax ? this.#sick : []
    const name = well ?? sick
    const host = name === undefined ? undefined : this.#hosts.get(name)
    const [item] = host?.waiting ?? []
    if (name === undefined || host === undefined || item === undefined) return undefined
    host.waiting.delete(item)
    this.#count(host, 1)
    // To the end of the round.
    this.#well.delete(name)
    this.#sick.delete(name)
    this.#place(name, host)
    return item
  }

  /** @param host that of `take`; @param healthy undefined when nothing was learned about it */
  done(name: string, healthy: boolean | undefined): void {
    const host = this.#hosts.get(name)
    if (host === undefined) return
    this.#count(host, -1)
    if (healthy !== undefined) {
      const before = host.failures
      host.failures = healthy ? 0 : before + 1
      if (before === 0 && host.failures > 0) this.#sickUnderWay += host.underWay
      if (before > 0 && host.failures === 0) this.#sickUnderWay -= host.underWay
    }
    this.#place(name, host)
  }

  #count(host: Host<T>, by: 1 | -1): void {
    host.underWay += by
    this.#underWay += by
    if (host.failures > 0) this.#sickUnderWay += by
  }

  #place(name: string, host: Host<T>): void {
    const isSick = host.failures > 0
    const max = isSick ? Math.max(1, Math.floor(this.#limits.perHostMax / 4)) : this.#limits.perHostMax
    const ready = host.waiting.size > 0 && host.underWay < max
    const [its, other] = isSick ? [this.#sick, this.#well] : [this.#well, this.#sick]
    other.delete(name)
    if (ready) its.add(name)
    else its.delete(name)
    this.#forgetIdle(name, host)
  }

  #forgetIdle(name: string, host: Host<T>): void {
    this.#idleSick.delete(name)
    if (host.waiting.size > 0 || host.underWay > 0) return
    if (host.failures === 0) {
      this.#hosts.delete(name)
      return
    }
    this.#idleSick.add(name)
    if (this.#idleSick.size <= rememberedMax) return
    const [oldest] = this.#idleSick as Set<string> & [string]
    this.#idleSick.delete(oldest)
    this.#hosts.delete(oldest)
  }
}
