/** How a host took what went to it last; `new`: nothing is known of it. */
export type Standing = 'well' | 'new' | 'sick'

const standings = ['well', 'new', 'sick'] as const

/** Hosts of each standing that are remembered while nothing goes to them. */
const rememberedMax = 10_000

/**
 * Which host is next for what there is only so much of. Standings take turns, and hosts within one. Hosts that nothing is
 * known of and those that fail hold at most three quarters of it, those that fail at most half: however many they are, and
 * whoever named them, something is left for those that take what they are sent.
 */
export class HostLine {
  readonly #max: Record<Standing | 'unproven', number>
  readonly #remembered = { well: new Set<string>(), sick: new Set<string>() }
  /** Hosts that something may be begun for, next first. */
  readonly #ready = { well: new Set<string>(), new: new Set<string>(), sick: new Set<string>() }
  readonly #underWay = { well: 0, new: 0, sick: 0 }
  /** Hosts that something is under way to. */
  readonly #active = new Map<string, { standing: Standing; underWay: number }>()
  #last = 0

  constructor(totalMax: number) {
    const [half, most] = [Math.ceil(totalMax / 2), Math.ceil((totalMax * 3) / 4)]
    this.#max = { well: totalMax, new: most, sick: half, unproven: most }
  }

  /** To all hosts. */
  get underWay(): number {
    const { well, new: unknown, sick } = this.#underWay
    return well + unknown + sick
  }

  standingOf(host: string): Standing {
    const active = this.#active.get(host)
    if (active !== undefined) return active.standing
    if (this.#remembered.well.has(host)) return 'well'
    return this.#remembered.sick.has(host) ? 'sick' : 'new'
  }

  /** One more may begin for a host of this standing. */
  hasRoom(standing: Standing): boolean {
    const { new: unknown, sick } = this.#underWay
    if (this.underWay >= this.#max.well) return false
    return (
      standing === 'well' ||
      (unknown + sick < this.#max.unproven && this.#underWay[standing] < this.#max[standing])
    )
  }

  /** Puts the host at the end of the line, leaves it where it is in it, or takes it out. */
  place(host: string, isReady: boolean): void {
    const its = this.standingOf(host)
    for (const standing of standings) {
      if (isReady && standing === its) this.#ready[standing].add(host)
      else this.#ready[standing].delete(host)
    }
  }

  /** Out of the line; undefined where nobody is in it, or nothing is left for those who are. */
  next(): string | undefined {
    for (const _ of standings) {
      this.#last = (this.#last + 1) % standings.length
      const standing = standings[this.#last] ?? 'well'
      const [host] = this.#ready[standing]
      if (host === undefined || !this.hasRoom(standing)) continue
      this.#ready[standing].delete(host)
      return host
    }
    return undefined
  }

  begin(host: string): void {
    const active = this.#active.get(host) ?? { standing: this.standingOf(host), underWay: 0 }
    this.#active.set(host, active)
    active.underWay += 1
    this.#underWay[active.standing] += 1
  }

  /** @param well how it was taken; undefined: nothing was learned */
  end(host: string, well: boolean | undefined): void {
    const active = this.#active.get(host)
    if (active === undefined) return
    active.underWay -= 1
    this.#underWay[active.standing] -= 1
    if (well !== undefined) this.#learn(host, active, well ? 'well' : 'sick')
    if (active.underWay === 0) this.#active.delete(host)
  }

  /** What else is under way to the host counts as the last one ended. */
  #learn(host: string, active: { standing: Standing; underWay: number }, now: 'well' | 'sick'): void {
    this.#underWay[active.standing] -= active.underWay
    this.#underWay[now] += active.underWay
    if (this.#ready[active.standing].delete(host)) this.#ready[now].add(host)
    active.standing = now
    this.#remembered[now === 'well' ? 'sick' : 'well'].delete(host)
    const same = this.#remembered[now]
    same.delete(host)
    same.add(host)
    const [oldest] = same
    if (same.size > rememberedMax && oldest !== undefined) same.delete(oldest)
  }
}
