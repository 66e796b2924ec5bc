import type { Query } from '../score/query.ts'
import type { Sums } from './gather.ts'
import type { Learned } from './learned.ts'
import type { Rows } from './rows.ts'

/** Notes, for every agent with lessons, the most that they can say for the text, and how much of it they tell. */
export function addLearned(query: Query, mass: number, learned: Learned, rows: Rows, sums: Sums): void {
  learned.forEach(query, mass, (agent, most, known) => {
    const row = rows.byId(agent)
    if (row !== undefined) sums.teach(row.number, most, known)
  })
  sums.most = learned.most(query, mass)
}
