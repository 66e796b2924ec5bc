import { expect, test } from 'vitest'
import { overBudget, readBudgets } from './budgets.ts'
import { measureCosts } from './measure.ts'

test('requests of the hot path allocate no more than their budgets', {
  timeout: 120_000,
}, async () => {
  expect(overBudget(await measureCosts(), readBudgets())).toEqual([])
})

test('a request that allocates 5 % more than its budget is reported', () => {
  expect(overBudget({ send: 102 }, { send: 100 })).toEqual([])
  expect(overBudget({ send: 105 }, { send: 100 })).toEqual(['send allocates 105 bytes instead of 100'])
})

test('a request without a budget is reported', () => {
  expect(overBudget({ get: 1 }, {})).toEqual(['get has no budget: npm run budget -- --write'])
})
