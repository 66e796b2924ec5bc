/** How the last delivery to a host ended. `new` means that no delivery has ended yet. */
export type HostHealth = 'healthy' | 'new' | 'failing'

type Counts = Record<HostHealth, number>

const none: Readonly<Counts> = { healthy: 0, new: 0, failing: 0 }
const sumOf = (counts: Readonly<Counts>) => counts.healthy + counts.new + counts.failing

/**
 * Limits concurrent deliveries. New and failing hosts together hold at most three quarters of the slots, and
 * failing hosts at most half, so slots always remain for healthy hosts. Within each of these limits, an owner
 * may hold as many slots as are still free: a single owner half of them, and two owners a third each. One
 * owner's hanging deliveries therefore never use up all slots.
 */
export class ConcurrencyBudget {
  readonly #max: { all: number; unproven: number; failing: number }
  readonly #used: Counts = { ...none }
  readonly #usedBy = new Map<string, Counts>()

  constructor(totalMax: number) {
    this.#max = { all: totalMax, unproven: Math.ceil((totalMax * 3) / 4), failing: Math.ceil(totalMax / 2) }
  }

  /** The total number of slots in use. */
  get used(): number {
    return sumOf(this.#used)
  }

  /** Whether hosts with this health already hold all slots allowed to them, counting all owners. */
  isFull(health: HostHealth): boolean {
    return !this.#fits(health, none)
  }

  /** Whether the owner may start another delivery to a host with this health. */
  canStart(health: HostHealth, owner: string): boolean {
    return this.#fits(health, this.#usedBy.get(owner) ?? none)
  }

  /** Changes the number of slots in use. @param by negative to release slots */
  count(owner: string, health: HostHealth, by: number): void {
    const own = this.#usedBy.get(owner) ?? { ...none }
    own[health] += by
    this.#used[health] += by
    if (sumOf(own) > 0) this.#usedBy.set(owner, own)
    else this.#usedBy.delete(owner)
  }

  #fits(health: HostHealth, own: Readonly<Counts>): boolean {
    const [all, max] = [this.#used, this.#max]
    if (sumOf(own) >= max.all - sumOf(all)) return false
    if (health === 'healthy') return true
    if (own.new + own.failing >= max.unproven - all.new - all.failing) return false
    return health === 'new' || own.failing < max.failing - all.failing
  }
}
