import type { Sums } from './gather.ts'
import type { WordIndex } from './word-index.ts'

/** The `count` units of which words and lessons say most, these first; none that nothing speaks for. */
export function likeliest(sums: Sums, index: WordIndex, count: number): number[] {
  // Two rows of numbers: thousands of units come by for each ranking, and what each would leave behind is garbage.
  const [units, most]: [number[], number[]] = [[], []]
  let least = 0
  for (let unit = 0; unit < index.capacity; unit += 1) {
    if (sums.isSilent(unit)) continue
    const row = index.rowOf(unit)
    if (row < 0) continue
    const said = sums.evidenceMost(row, sums.words[unit] as number)
    if (said <= least) continue
    let at = Math.min(units.length, count - 1)
    for (; at > 0 && (most[at - 1] as number) < said; at -= 1) {
      most[at] = most[at - 1] as number
      units[at] = units[at - 1] as number
    }
    most[at] = said
    units[at] = unit
    if (units.length === count) least = most[count - 1] as number
  }
  return units
}
