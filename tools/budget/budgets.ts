/** The table of budgets: `budgets.json`, which `npm run budget -- --write` replaces. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Costs } from './measure.ts'

const file = new URL('budgets.json', import.meta.url)

export const readBudgets = (): Costs => JSON.parse(readFileSync(file, 'utf8')) as Costs
export const writeBudgets = (costs: Costs) => writeFileSync(file, `${JSON.stringify(costs, null, 2)}\n`)

/** The share by which a request may exceed its budget. Runs differ by less than 2 %, on an idle machine and under load. */
const margin = 0.04

/** The costs above their budgets, as sentences. */
export function overBudget(costs: Costs, budgets: Costs): string[] {
  return Object.entries(costs).flatMap(([name, bytes]) => {
    const budget = budgets[name]
    if (budget === undefined) return [`${name} has no budget: npm run budget -- --write`]
    return bytes <= budget * (1 + margin) ? [] : [`${name} allocates ${bytes} bytes instead of ${budget}`]
  })
}
