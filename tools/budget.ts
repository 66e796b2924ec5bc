/**
 * `npm run budget`: prints the bytes that requests of the hot path allocate, next to their budgets, which a test compares.
 * `npm run budget -- --write` replaces the budgets by the measured figures: after an improvement, or with a reason in the commit.
 */
import { overBudget, readBudgets, writeBudgets } from './budget/budgets.ts'
import { measureCosts } from './budget/measure.ts'

const costs = await measureCosts()
const budgets = readBudgets()
console.table(
  Object.fromEntries(
    Object.entries(costs).map(([name, bytes]) => [name, { 'allocated bytes': bytes, budget: budgets[name] }]),
  ),
)
if (process.argv.includes('--write')) writeBudgets(costs)
else {
  const over = overBudget(costs, budgets)
  for (const sentence of over) console.log(sentence)
  process.exitCode = over.length === 0 ? 0 : 1
}
