/** How a host took what went to it last; `new`: nothing is known of it. */
export type HostHealth = 'well' | 'new' | 'sick'

type Counts = Record<HostHealth, number>

const none: Readonly<Counts> = { well: 0, new: 0, sick: 0 }
const sumOf = (counts: Readonly<Counts>) => counts.well + counts.new + counts.sick

/**
 * Bounds what is under way at a time. Hosts that nothing is known of and those that fail hold at most three quarters of the
 * places, those that fail at most half: however many they are and whichever owner registered them, places are left for those that take
 * what they are sent. Of each of these shares an owner may hold as many places as are still free: one owner alone half, two a
 * third each. So owners whose deliveries hang leave free places for others, and no other owner waits until one of them ends.
 */
export class ConcurrencyBudget {
  readonly #max: { all: number; unproven: number; sick: number }
  readonly #taken: Counts = { ...none }
  readonly #takenBy = new Map<string, Counts>()

  constructor(totalMax: number) {
    this.#max = { all: totalMax, unproven: Math.ceil((totalMax * 3) / 4), sick: Math.ceil(totalMax / 2) }
  }

  /** In all. */
  get taken(): number {
    return sumOf(this.#taken)
  }

  /** Maximum number of places for hosts of this standing, over all owners. */
  isFull(standing: HostHealth): boolean {
    return !this.#fits(standing, none)
  }

  /** The owner may begin one more for a host of this standing. */
  hasRoom(standing: HostHealth, owner: string): boolean {
    return this.#fits(standing, this.#takenBy.get(owner) ?? none)
  }

  /** @param by negative: they are given back */
  count(owner: string, standing: HostHealth, by: number): void {
    const its = this.#takenBy.get(owner) ?? { ...none }
    its[standing] += by
    this.#taken[standing] += by
    if (sumOf(its) > 0) this.#takenBy.set(owner, its)
    else this.#takenBy.delete(owner)
  }

  #fits(standing: HostHealth, own: Readonly<Counts>): boolean {
    const [all, max] = [this.#taken, this.#max]
    if (sumOf(own) >= max.all - sumOf(all)) return false
    if (standing === 'well') return true
    if (own.new + own.sick >= max.unproven - all.new - all.sick) return false
    return standing === 'new' || own.sick < max.sick - all.sick
  }
}
