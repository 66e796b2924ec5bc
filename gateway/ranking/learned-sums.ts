import { learnedWeight } from '../../shared/negotiation/evidence.ts'
import type { Query } from '../../shared/negotiation/query.ts'
import type { Sums } from './gather.ts'
import type { Learned } from './learned.ts'
import type { Rows } from './rows.ts'

/** Notes, for every agent with lessons, the most that they can say for the text. */
export function addLearned(query: Query, mass: number, learned: Learned, rows: Rows, sums: Sums): void {
  learned.forEach(query, (agent, evidence, past) => {
    const row = rows.byId(agent)
    if (row !== undefined) sums.learned[row.number] = Math.min(mass, learnedWeight * evidence + mass * past)
  })
}
