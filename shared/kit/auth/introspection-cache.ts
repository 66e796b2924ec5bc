import type { Introspection } from './introspection.ts'
import { type LeaseGrant, type LeaseState, leaseMaxMs } from './lease-protocol.ts'

/** The two clocks of a process, in milliseconds. */
export interface Clocks {
  /** Never set, but it may stop while the machine is suspended. */
  monotonic(): number
  /** Runs while the machine is suspended, but it may be set. Counted from 1970. */
  wall(): number
}

export const systemClocks: Clocks = { monotonic: () => performance.now(), wall: () => Date.now() }

/** A point in time on both clocks. */
export interface Instant {
  monotonic: number
  wall: number
}

/** The poll that a lease is counted from. */
export interface SentPoll extends Instant {
  applied?: { instance: string; seq: number }
}

const noLease = { monotonic: 0, wall: 0, ms: 0 }

interface Entry {
  answer: Introspection
  /** A resolved promise, so that a look-up allocates nothing. */
  promise: Promise<Introspection>
  tags: readonly string[]
  /** When the token expires, on the monotonic clock. */
  expiresAt: number
}

/**
 * Introspection responses that are used only under a lease. A lease is valid while both clocks say so: the monotonic
 * clock guards against a wall clock that is set back, and the wall clock against a machine that was suspended.
 */
export class IntrospectionCache {
  readonly #clocks: Clocks
  readonly #generationMax: number
  /** Entries since the last rotation, and those before it, of which the unused ones are dropped by the next rotation. */
  #recent = new Map<string, Entry>()
  #older = new Map<string, Entry>()
  #applied: { instance: string; seq: number } | undefined
  /** When the poll was sent from which the lease is counted, and the duration of the lease in milliseconds. */
  #lease: Instant & { ms: number } = noLease
  #version = 0

  /** @param entriesMax the least recently used responses above this number are dropped */
  constructor(entriesMax = 10_000, clocks: Clocks = systemClocks) {
    this.#clocks = clocks
    this.#generationMax = Math.max(1, Math.floor(entriesMax / 2))
  }

  /** Changes with each invalidation. A response that was requested for an earlier version may be outdated. */
  get version(): number {
    return this.#version
  }

  get size(): number {
    return this.#recent.size + this.#older.size
  }

  now(): Instant {
    return { monotonic: this.#clocks.monotonic(), wall: this.#clocks.wall() }
  }

  hasLease(): boolean {
    return this.#isLeased(this.#clocks.monotonic(), this.#clocks.wall())
  }

  /** Returns the same promise and frozen response for each look-up, or undefined if the token must be introspected. */
  get(token: string): Promise<Introspection> | undefined {
    const entry = this.#recent.get(token) ?? this.#promote(token)
    if (entry === undefined) return undefined
    const monotonic = this.#clocks.monotonic()
    if (!this.#isLeased(monotonic, this.#clocks.wall())) return undefined
    if (monotonic >= entry.expiresAt && entry.answer.active) expire(entry)
    return entry.promise
  }

  /** @param sent when the introspection request was sent */
  set(token: string, sent: Instant, answer: Introspection, { instance, seq, tags, now }: LeaseState): void {
    const { exp } = answer
    if (!answer.active || exp === undefined) return
    // The response may precede an invalidation that was applied while it was under way.
    if (this.#applied?.instance !== instance || seq < this.#applied.seq) return
    const expiresAt = sent.monotonic + (exp * 1000 - now)
    const frozen = Object.freeze(answer)
    if (this.#recent.size >= this.#generationMax) this.#rotate()
    this.#older.delete(token)
    this.#recent.set(token, { answer: frozen, promise: Promise.resolve(frozen), tags, expiresAt })
  }

  poll(): SentPoll {
    return { ...this.now(), ...(this.#applied && { applied: this.#applied }) }
  }

  /** Applies the invalidations of the answer to the last poll and begins the lease. */
  granted(sent: SentPoll, { instance, seq, drop, lease_ms: leaseMs }: LeaseGrant): void {
    if (drop === 'all' || sent.applied?.instance !== instance) this.#clear()
    else if (drop.length > 0) this.#drop(new Set(drop))
    this.#applied = { instance, seq }
    this.#lease = { monotonic: sent.monotonic, wall: sent.wall, ms: Math.min(leaseMs, leaseMaxMs) }
  }

  /** Ends the lease and drops all responses. */
  lost(): void {
    this.#clear()
    this.#applied = undefined
    this.#lease = noLease
  }

  #isLeased(monotonic: number, wall: number): boolean {
    const lease = this.#lease
    const elapsed = wall - lease.wall
    return monotonic - lease.monotonic < lease.ms && elapsed >= 0 && elapsed < lease.ms
  }

  #promote(token: string): Entry | undefined {
    const entry = this.#older.get(token)
    if (entry === undefined) return undefined
    this.#older.delete(token)
    if (this.#recent.size >= this.#generationMax) this.#rotate()
    this.#recent.set(token, entry)
    return entry
  }

  #rotate(): void {
    this.#older = this.#recent
    this.#recent = new Map()
  }

  #clear(): void {
    this.#recent.clear()
    this.#older.clear()
    this.#version += 1
  }

  #drop(tags: ReadonlySet<string>): void {
    this.#version += 1
    for (const entries of [this.#recent, this.#older])
      for (const [token, entry] of entries) if (entry.tags.some((tag) => tags.has(tag))) entries.delete(token)
  }
}

/** The response is the same as that of the OAuth server for an expired token that was not revoked. */
function expire(entry: Entry): void {
  const { exp } = entry.answer
  entry.answer = Object.freeze(exp === undefined ? { active: false } : { active: false, exp })
  entry.promise = Promise.resolve(entry.answer)
}
