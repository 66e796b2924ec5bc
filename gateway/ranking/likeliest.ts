import type { Sums } from './gather.ts'
import type { WordIndex } from './word-index.ts'

/** About the `count` units of which words and lessons say most; none that nothing speaks for. */
export function likeliest(sums: Sums, index: WordIndex, count: number): number[] {
  const heads: { unit: number; most: number }[] = []
  let least = 0
  for (let unit = 0; unit < index.capacity; unit += 1) {
    const row = index.rowOf(unit)
    if (row < 0) continue
    const most = sums.evidenceMost(row, sums.words[unit] as number)
    if (most <= least) continue
    heads.push({ unit, most })
    if (heads.length < 4 * count) continue
    heads.sort((a, b) => b.most - a.most)
    heads.length = count
    least = heads[count - 1]?.most ?? 0
  }
  return heads
    .sort((a, b) => b.most - a.most)
    .slice(0, count)
    .map(({ unit }) => unit)
}
