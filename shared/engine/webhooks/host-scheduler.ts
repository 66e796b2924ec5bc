import { ConcurrencyBudget, type HostHealth } from './concurrency-budget.ts'
import { type ReadyHost, RoundRobin } from './round-robin.ts'

export type { HostHealth } from './concurrency-budget.ts'

/** The maximum number of idle hosts whose health is remembered, for each kind of health. */
const rememberedMax = 10_000

/**
 * The maximum number of owners per host that take part in the rotation at a time. The other owners follow as
 * these are served.
 */
const ownersPerHostMax = 16

interface Active {
  health: HostHealth
  /** The number of active deliveries by owner. */
  inFlight: Map<string, number>
}

/**
 * Selects the owner and host of the next delivery within a {@link ConcurrencyBudget}. Owners take turns,
 * regardless of how many hosts they have.
 */
export class HostScheduler {
  readonly #budget: ConcurrencyBudget
  readonly #rotation = new RoundRobin()
  readonly #remembered = { healthy: new Set<string>(), failing: new Set<string>() }
  /** The owners in the rotation for each host. */
  readonly #ready = new Map<string, { health: HostHealth; owners: Set<string> }>()
  /** The hosts with active deliveries. */
  readonly #active = new Map<string, Active>()
  readonly #limits = {
    isFull: (health: HostHealth) => this.#budget.isFull(health),
    canStart: (health: HostHealth, owner: string) => this.#budget.canStart(health, owner),
  }

  constructor(totalMax: number) {
    this.#budget = new ConcurrencyBudget(totalMax)
  }

  /** The number of active deliveries to all hosts. */
  get inFlight(): number {
    return this.#budget.used
  }

  healthOf(host: string): HostHealth {
    const active = this.#active.get(host)
    if (active !== undefined) return active.health
    if (this.#remembered.healthy.has(host)) return 'healthy'
    return this.#remembered.failing.has(host) ? 'failing' : 'new'
  }

  /** Whether the owner may start another delivery to the host. */
  canStart(host: string, owner: string): boolean {
    return this.#budget.canStart(this.healthOf(host), owner)
  }

  /**
   * Updates which owners are ready for the host.
   * @param owners in the host's order, or empty if the host is at its limit
   */
  setReady(host: string, owners: Iterable<string>): void {
    const before = this.#ready.get(host)
    const health = this.healthOf(host)
    const now = new Set<string>()
    for (const owner of owners) {
      if (now.size >= ownersPerHostMax) break
      now.add(owner)
    }
    for (const owner of before?.owners ?? [])
      if (before !== undefined && (before.health !== health || !now.has(owner)))
        this.#rotation.remove({ owner, host, health: before.health })
    for (const owner of now)
      if (before?.health !== health || !before.owners.has(owner)) this.#rotation.add({ owner, host, health })
    if (now.size > 0) this.#ready.set(host, { health, owners: now })
    else if (before !== undefined) this.#ready.delete(host)
  }

  /**
   * Removes and returns the next owner and host, or undefined if none may start. Call `setReady` afterwards.
   */
  next(): Pick<ReadyHost, 'host' | 'owner'> | undefined {
    const next = this.#rotation.next(this.#limits)
    if (next !== undefined) this.#ready.get(next.host)?.owners.delete(next.owner)
    return next
  }

  start(host: string, owner: string): void {
    const active = this.#active.get(host) ?? { health: this.healthOf(host), inFlight: new Map() }
    this.#active.set(host, active)
    active.inFlight.set(owner, (active.inFlight.get(owner) ?? 0) + 1)
    this.#budget.count(owner, active.health, 1)
  }

  /** Ends a delivery. Call `setReady` afterwards. @param succeeded undefined if the delivery was aborted */
  finish(host: string, owner: string, succeeded: boolean | undefined): void {
    const active = this.#active.get(host)
    const count = active?.inFlight.get(owner)
    if (active === undefined || count === undefined) return
    this.#budget.count(owner, active.health, -1)
    if (count > 1) active.inFlight.set(owner, count - 1)
    else active.inFlight.delete(owner)
    if (succeeded !== undefined) this.#updateHealth(host, active, succeeded ? 'healthy' : 'failing')
    if (active.inFlight.size === 0) this.#active.delete(host)
  }

  /** Updates the host's health, which determines how its other active deliveries are counted. */
  #updateHealth(host: string, active: Active, now: 'healthy' | 'failing'): void {
    if (active.health !== now)
      for (const [owner, count] of active.inFlight) {
        this.#budget.count(owner, active.health, -count)
        this.#budget.count(owner, now, count)
      }
    active.health = now
    this.#remembered[now === 'healthy' ? 'failing' : 'healthy'].delete(host)
    const same = this.#remembered[now]
    same.delete(host)
    same.add(host)
    const [oldest] = same
    if (same.size > rememberedMax && oldest !== undefined) same.delete(oldest)
  }
}
