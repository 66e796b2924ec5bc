import { ConcurrencyBudget, type HostHealth } from './concurrency-budget.ts'
import { type Ready, RoundRobin } from './round-robin.ts'

export type { HostHealth } from './concurrency-budget.ts'

/** Hosts of each standing that are remembered while nothing goes to them. */
const rememberedMax = 10_000

/** Owners with something for the same host that are in the line at a time; the others follow when one of them was served. */
const ownersPerHostMax = 16

interface Active {
  standing: HostHealth
  /** Under way, by owner. */
  underWay: Map<string, number>
}

/**
 * Which owner and which of its hosts is next for what there is only so much of ({@link ConcurrencyBudget}). Owners take turns, however
 * many hosts they have.
 */
export class HostScheduler {
  readonly #places: ConcurrencyBudget
  readonly #turns = new RoundRobin()
  readonly #remembered = { well: new Set<string>(), sick: new Set<string>() }
  /** Owners that are in the line for the host. */
  readonly #ready = new Map<string, { standing: HostHealth; owners: Set<string> }>()
  /** Hosts that something is under way to. */
  readonly #active = new Map<string, Active>()
  readonly #rules = {
    isFull: (standing: HostHealth) => this.#places.isFull(standing),
    hasRoom: (standing: HostHealth, owner: string) => this.#places.hasRoom(standing, owner),
  }

  constructor(totalMax: number) {
    this.#places = new ConcurrencyBudget(totalMax)
  }

  /** To all hosts. */
  get underWay(): number {
    return this.#places.taken
  }

  standingOf(host: string): HostHealth {
    const active = this.#active.get(host)
    if (active !== undefined) return active.standing
    if (this.#remembered.well.has(host)) return 'well'
    return this.#remembered.sick.has(host) ? 'sick' : 'new'
  }

  /** The owner may begin one more for the host. */
  hasRoom(host: string, owner: string): boolean {
    return this.#places.hasRoom(this.standingOf(host), owner)
  }

  /** @param owners who have something for the host, in their order there; none where nothing may begin for it */
  place(host: string, owners: Iterable<string>): void {
    const before = this.#ready.get(host)
    const standing = this.standingOf(host)
    const now = new Set<string>()
    for (const owner of owners) {
      if (now.size >= ownersPerHostMax) break
      now.add(owner)
    }
    for (const owner of before?.owners ?? [])
      if (before !== undefined && (before.standing !== standing || !now.has(owner)))
        this.#turns.remove({ owner, host, standing: before.standing })
    for (const owner of now)
      if (before?.standing !== standing || !before.owners.has(owner))
        this.#turns.add({ owner, host, standing })
    if (now.size > 0) this.#ready.set(host, { standing, owners: now })
    else if (before !== undefined) this.#ready.delete(host)
  }

  /** Out of the line; undefined when the line is empty or its owners have no place left. To be placed again. */
  next(): Pick<Ready, 'host' | 'owner'> | undefined {
    const next = this.#turns.next(this.#rules)
    if (next !== undefined) this.#ready.get(next.host)?.owners.delete(next.owner)
    return next
  }

  begin(host: string, owner: string): void {
    const active = this.#active.get(host) ?? { standing: this.standingOf(host), underWay: new Map() }
    this.#active.set(host, active)
    active.underWay.set(owner, (active.underWay.get(owner) ?? 0) + 1)
    this.#places.count(owner, active.standing, 1)
  }

  /** To be placed again. @param well how it was taken; undefined: nothing was learned */
  end(host: string, owner: string, well: boolean | undefined): void {
    const active = this.#active.get(host)
    const its = active?.underWay.get(owner)
    if (active === undefined || its === undefined) return
    this.#places.count(owner, active.standing, -1)
    if (its > 1) active.underWay.set(owner, its - 1)
    else active.underWay.delete(owner)
    if (well !== undefined) this.#learn(host, active, well ? 'well' : 'sick')
    if (active.underWay.size === 0) this.#active.delete(host)
  }

  /** What else is under way to the host counts as the last one ended. */
  #learn(host: string, active: Active, now: 'well' | 'sick'): void {
    if (active.standing !== now)
      for (const [owner, its] of active.underWay) {
        this.#places.count(owner, active.standing, -its)
        this.#places.count(owner, now, its)
      }
    active.standing = now
    this.#remembered[now === 'well' ? 'sick' : 'well'].delete(host)
    const same = this.#remembered[now]
    same.delete(host)
    same.add(host)
    const [oldest] = same
    if (same.size > rememberedMax && oldest !== undefined) same.delete(oldest)
  }
}
