import { learnedWeight } from '../../shared/negotiation/evidence.ts'
import type { Query } from '../../shared/negotiation/query.ts'
import type { Sums } from './gather.ts'
import type { Learned } from './learned.ts'
import type { Rows } from './rows.ts'

/** Adds up, for every agent with lessons on the text, the most that they can say for it. */
export function learnedMost(query: Query, mass: number, learned: Learned, rows: Rows, sums: Sums): void {
  for (const feature of query.features) {
    for (const agent of learned.holders(feature)) {
      const row = rows.byId(agent)
      if (row === undefined) continue
      const value = learnedWeight * learned.evidence(agent, feature)
      if (value <= 0) continue
      const before = sums.learned[row.number] as number
      if (before === 0) sums.rows.push(row.number)
      sums.learned[row.number] = Math.min(mass, before + value)
    }
  }
}
