import { randomUUID } from 'node:crypto'
import { type LeaseGrant, type LeasePoll, type LeaseState, leaseMaxMs } from '@parley/kit/auth/lease-protocol'
import { InvalidationLog } from './invalidation-log.ts'
import type { SharedLog } from './lease-records.ts'

export interface LeaseGrantorOptions {
  /** Whether an earlier process may have granted leases that have not ended. */
  mayBeOutstanding?: boolean
  /** Maximum number of holders; others are granted no lease. Default 1000. */
  holdersMax?: number
  /** Monotonic clock in milliseconds. */
  now?: () => number
}

/**
 * How long the grantor counts on a lease. This is longer than the holder's own limit, so that clocks may differ in speed
 * by 5 %.
 */
export const leaseWaitMs = 2000
/** A poll is answered after this time at the latest, so that the next one renews the lease before it ends. */
const holdMs = 600
/** A client whose holder did not acknowledge an invalidation in time is granted no lease for this long. */
const penaltyMs = 5000
/** Holders without a lease are forgotten after this time. */
const forgetMs = 10_000
/** Maximum number of holders with one client, for example the processes of one agent. */
const holdersOfClientMax = 100

interface Holder {
  client: string
  /** Number of the last poll. */
  poll: number
  /** Number up to which the last answer contained invalidations. */
  answered: number
  /** When the last lease ends at the latest. */
  leaseEndsAt: number
  seenAt: number
  /** Answers the poll that is held. */
  answer: (() => void) | undefined
}

/** Represents the holders of leases that an earlier process granted. */
const earlierProcess: Holder = {
  client: '',
  poll: 0,
  answered: 0,
  leaseEndsAt: 0,
  seenAt: 0,
  answer: undefined,
}

/** The holders that must acknowledge an invalidation, and when their leases end. */
interface Settlement {
  /** Number of the invalidation. */
  seq: number
  outstanding: Map<Holder, number>
  timer: NodeJS.Timeout | undefined
  settled: PromiseWithResolvers<void>
}

/**
 * Grants leases on introspection responses and invalidates the responses
 * (docs/decisions/0023-coherent-introspection.md).
 */
export class LeaseGrantor {
  #instance: string = randomUUID()
  readonly #now: () => number
  readonly #holdersMax: number
  #log = new InvalidationLog()
  /** Number of the last invalidation that is settled. */
  #settledSeq = 0
  #grantsUntil = Number.POSITIVE_INFINITY
  readonly #holders = new Map<string, Holder>()
  readonly #settlements = new Set<Settlement>()
  /** The settlement of the invalidations in this turn of the event loop. */
  #current: Settlement | undefined
  /** By client id, when its penalty ends. */
  readonly #penalties = new Map<string, number>()
  readonly #earlierLeasesEndAt: number
  #isWaking = false
  #stopped = false

  constructor({ mayBeOutstanding = false, holdersMax = 1000, now }: LeaseGrantorOptions = {}) {
    this.#now = now ?? (() => performance.now())
    this.#holdersMax = holdersMax
    this.#earlierLeasesEndAt = mayBeOutstanding ? this.#now() + leaseWaitMs : Number.NEGATIVE_INFINITY
  }

  get instance(): string {
    return this.#instance
  }

  get seq(): number {
    return this.#log.last
  }

  /** No holder uses a response from before this invalidation. */
  get settledSeq(): number {
    return this.#settlements.size === 0 ? this.seq : this.#settledSeq
  }

  get hasHolders(): boolean {
    return this.#holders.size > 0
  }

  /** Whether a holder may still use a lease. */
  get isOutstanding(): boolean {
    const now = this.#now()
    return now < this.#earlierLeasesEndAt || this.#holders.values().some((holder) => holder.leaseEndsAt > now)
  }

  /**
   * Invalidates the responses with any of these tags. The change must be durable already.
   * @returns a promise that resolves when no holder can use such a response any longer, after 2 s at the latest
   */
  invalidate(tags: readonly string[]): Promise<void> {
    this.#forget()
    this.#log.add(tags)
    this.#wakeLater()
    return this.#settle()
  }

  /**
   * Applies the invalidations of the log that several gateways share.
   * @returns a promise that resolves when they are settled
   */
  follow({ instance, seq, recent }: SharedLog): Promise<void> {
    if (instance !== this.#instance) {
      this.#instance = instance
      this.#log = new InvalidationLog((recent[0]?.seq ?? seq + 1) - 1)
      this.#settledSeq = 0
      for (const settlement of this.#settlements) settlement.seq = seq
    } else if (seq <= this.seq) return this.settled()
    for (const invalidation of recent) {
      if (invalidation.seq <= this.seq) continue
      if (invalidation.seq > this.seq + 1) this.#log.skipTo(invalidation.seq - 1)
      this.#log.add(invalidation.tags)
    }
    if (this.seq < seq) this.#log.skipTo(seq)
    this.#wakeLater()
    return this.#settle()
  }

  /** Grants no leases after this time on the monotonic clock. */
  grantUntil(time: number): void {
    this.#grantsUntil = time
  }

  /** Resolves when all earlier invalidations are settled. */
  async settled(): Promise<void> {
    await Promise.all([...this.#settlements].map(({ settled }) => settled.promise))
  }

  /** The state for which a response is valid that is read after this call. Undefined if no leases are granted. */
  stateFor(now = Date.now()): Omit<LeaseState, 'tags'> | undefined {
    return this.#stopped ? undefined : { instance: this.#instance, seq: this.seq, now }
  }

  /**
   * Resolves with the answer to a poll, which is held until there is an invalidation or some time has passed.
   * @param signal aborts when the holder has disconnected
   */
  async poll(client: string, request: LeasePoll, signal: AbortSignal): Promise<LeaseGrant> {
    const receivedAt = this.#now()
    const holder = this.#holderOf(client, request)
    if (holder === undefined || request.poll <= holder.poll) return this.#refusal()
    const superseded = holder.answer
    holder.poll = request.poll
    holder.seenAt = receivedAt
    superseded?.()
    if (request.leave === true) return this.#leave(holder, client, request)
    const { applied } = request
    if (applied?.instance !== this.#instance) {
      // The holder's cache is empty.
      this.#acknowledge(holder, this.seq)
      return this.#answer(holder, receivedAt, 'all')
    }
    // A holder applies each answer before its next poll. Another gateway may have answered the last one.
    if (applied.seq < holder.answered) return this.#penalize(holder)
    if (applied.seq > this.seq) return this.#refusal()
    this.#acknowledge(holder, applied.seq)
    if (applied.seq === this.seq) await this.#hold(holder, signal)
    if (signal.aborted || request.poll !== holder.poll) return this.#refusal()
    return this.#answer(holder, receivedAt, this.#since(applied))
  }

  /** Answers all polls and grants no more leases. */
  stop(): void {
    this.#stopped = true
    this.#wake()
  }

  #holderOf(client: string, { holder: id }: LeasePoll): Holder | undefined {
    const key = `${id} ${client}`
    const known = this.#holders.get(key)
    if (known !== undefined) return known
    if (this.#stopped) return undefined
    if (this.#holders.size >= this.#holdersMax) this.#forget()
    if (this.#holders.size >= this.#holdersMax || this.#holdersOf(client) >= holdersOfClientMax)
      return undefined
    const holder: Holder = {
      client,
      poll: -1,
      answered: 0,
      leaseEndsAt: Number.NEGATIVE_INFINITY,
      seenAt: this.#now(),
      answer: undefined,
    }
    this.#holders.set(key, holder)
    return holder
  }

  #answer(holder: Holder, receivedAt: number, drop: LeaseGrant['drop']): LeaseGrant {
    const now = this.#now()
    if (this.#stopped || now >= this.#grantsUntil || (this.#penalties.get(holder.client) ?? 0) > now)
      return this.#refusal()
    holder.answered = this.seq
    holder.leaseEndsAt = Math.max(holder.leaseEndsAt, receivedAt + leaseWaitMs)
    return { instance: this.#instance, seq: this.seq, drop, lease_ms: leaseMaxMs }
  }

  /** The log may have been replaced while the poll was held. */
  #since({ instance, seq }: NonNullable<LeasePoll['applied']>): LeaseGrant['drop'] {
    return instance === this.#instance ? this.#log.since(seq) : 'all'
  }

  #refusal(): LeaseGrant {
    return { instance: this.#instance, seq: this.seq, drop: 'all', lease_ms: 0 }
  }

  #leave(holder: Holder, client: string, { holder: id }: LeasePoll): LeaseGrant {
    this.#acknowledge(holder, Number.POSITIVE_INFINITY)
    this.#holders.delete(`${id} ${client}`)
    return this.#refusal()
  }

  #penalize({ client }: Holder): LeaseGrant {
    this.#penalties.set(client, this.#now() + penaltyMs)
    return this.#refusal()
  }

  async #hold(holder: Holder, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    holder.answer = resolve
    const timer = setTimeout(resolve, holdMs)
    signal.addEventListener('abort', () => resolve())
    if (this.#stopped || signal.aborted) resolve()
    await promise
    clearTimeout(timer)
    if (holder.answer === resolve) holder.answer = undefined
  }

  /** Invalidations in the same turn of the event loop are sent together. */
  #wakeLater(): void {
    if (this.#isWaking) return
    this.#isWaking = true
    setImmediate(() => {
      this.#isWaking = false
      this.#current = undefined
      this.#wake()
    })
  }

  #wake(): void {
    for (const holder of this.#holders.values()) holder.answer?.()
  }

  #settle(): Promise<void> {
    const now = this.#now()
    const settlement: Settlement = this.#current ?? {
      seq: 0,
      outstanding: new Map(),
      settled: Promise.withResolvers(),
      timer: undefined,
    }
    settlement.seq = this.seq
    for (const holder of this.#holders.values())
      if (holder.leaseEndsAt > now) settlement.outstanding.set(holder, holder.leaseEndsAt)
    if (this.#earlierLeasesEndAt > now) settlement.outstanding.set(earlierProcess, this.#earlierLeasesEndAt)
    this.#current = settlement
    this.#settlements.add(settlement)
    this.#check(settlement)
    return settlement.settled.promise
  }

  #acknowledge(holder: Holder, seq: number): void {
    for (const settlement of this.#settlements) {
      const { outstanding } = settlement
      if (settlement.seq <= seq && outstanding.delete(holder) && outstanding.size === 0)
        this.#check(settlement)
    }
  }

  /** Resolves the settlement if each lease was acknowledged or has ended, else checks again when the next one ends. */
  #check(settlement: Settlement): void {
    const { outstanding } = settlement
    clearTimeout(settlement.timer)
    const now = this.#now()
    let next = Number.POSITIVE_INFINITY
    for (const [holder, endsAt] of outstanding) {
      if (endsAt > now) {
        next = Math.min(next, endsAt)
        continue
      }
      outstanding.delete(holder)
      this.#penalize(holder)
    }
    if (outstanding.size > 0) {
      settlement.timer = setTimeout(() => this.#check(settlement), next - now)
      return
    }
    if (this.#current === settlement) this.#current = undefined
    this.#settlements.delete(settlement)
    this.#settledSeq = Math.max(this.#settledSeq, settlement.seq)
    settlement.settled.resolve()
  }

  #holdersOf(client: string): number {
    let count = 0
    for (const holder of this.#holders.values()) if (holder.client === client) count += 1
    return count
  }

  /** Drops the records of holders and penalties that have no effect any longer. */
  #forget(): void {
    const now = this.#now()
    for (const [key, { leaseEndsAt, seenAt, answer }] of this.#holders)
      if (leaseEndsAt <= now && answer === undefined && seenAt + forgetMs <= now) this.#holders.delete(key)
    for (const [client, until] of this.#penalties) if (until <= now) this.#penalties.delete(client)
  }
}
