import { expect, test } from 'vitest'
import { decimalSum, grouped, perDay, total } from './usage-sums.js'

const row = (fields: object) => ({
  tasks: 1,
  completed: 1,
  failed: 0,
  worked_ms: 10,
  input_tokens: 0,
  output_tokens: 0,
  paid: [],
  ...fields,
})
const usdc = (amount: string) => ({ asset: '0x1', asset_name: 'USDC', network: 'eip155:1', amount })

test.each([
  ['0.1', '0.2', '0.3'],
  ['1', '2', '3'],
  ['0.01', '10', '10.01'],
  ['0.5', '0.5', '1'],
  ['9007199254740993', '0.000000000000000001', '9007199254740993.000000000000000001'],
  ['90', '10', '100'],
])('%s and %s are %s', (a, b, sum) => {
  expect(decimalSum(a, b)).toBe(sum)
})

test('amounts are added per asset and network, and test money is kept apart', () => {
  const test = { ...usdc('5'), sandbox: true as const }
  expect(total([row({ paid: [usdc('0.01'), test] }), row({ paid: [usdc('0.02')] })]).paid).toEqual([
    usdc('0.03'),
    test,
  ])
})

test('a day without usage has a row with zeros', () => {
  const days = perDay([row({ day: '2026-11-20', tasks: 3 })], '2026-11-20', '2026-11-22')
  expect(days.map(({ day, row: { tasks } }) => [day, tasks])).toEqual([
    ['2026-11-20', 3],
    ['2026-11-21', 0],
    ['2026-11-22', 0],
  ])
})

test('groups are sorted by their tasks', () => {
  const rows = [row({ owner: 'a' }), row({ owner: 'b', tasks: 5 }), row({ owner: 'a' })]
  expect(grouped(rows, 'owner').map(({ name, row: { tasks } }) => [name, tasks])).toEqual([
    ['b', 5],
    ['a', 2],
  ])
})
