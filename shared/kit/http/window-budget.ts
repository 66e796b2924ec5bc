import { RecentMap } from '../did/recent-map.ts'

/** Counts units per key in windows of a fixed length. The keys that were used least recently are dropped. */
export class WindowBudget {
  readonly #windowMs: number
  readonly #spent: RecentMap<string, { since: number; units: number }>

  constructor({ windowMs, keysMax }: { windowMs: number; keysMax: number }) {
    this.#windowMs = windowMs
    this.#spent = new RecentMap(keysMax)
  }

  /**
   * Spends the units, unless the key would have spent more than `max` in the window. The first units of a window are always spent.
   *
   * @returns the time until the window ends if the units are refused
   */
  spend(key: string, units: number, max: number): number | undefined {
    const now = performance.now()
    const found = this.#spent.get(key)
    const current =
      found !== undefined && now - found.since < this.#windowMs ? found : { since: now, units: 0 }
    if (current.units > 0 && current.units + units > max) return current.since + this.#windowMs - now
    current.units += units
    this.#spent.set(key, current)
    return undefined
  }
}
