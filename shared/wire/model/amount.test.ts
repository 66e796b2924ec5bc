import { expect, test } from 'vitest'
import { isDecimal, toAtomic, toWhole } from './amount.ts'

test.each<[string, number, bigint]>([
  ['0.01', 6, 10_000n],
  ['1', 6, 1_000_000n],
  ['0', 6, 0n],
  ['0.000001', 6, 1n],
  ['0.10', 6, 100_000n],
  ['12', 0, 12n],
  // A float would round it.
  ['9007199254740993.000000000000000001', 18, 9007199254740993000000000000000001n],
])('%s with %i decimals equals %i atomic units', (amount, decimals, atomic) => {
  expect(toAtomic(amount, decimals)).toBe(atomic)
})

test.each<[bigint, number, string]>([
  [10_000n, 6, '0.01'],
  [1n, 18, '0.000000000000000001'],
  [1_500_000n, 6, '1.5'],
  [1_000_000n, 6, '1'],
  [0n, 6, '0'],
  [12n, 0, '12'],
])('%i atomic units with %i decimals equal %s', (atomic, decimals, amount) => {
  expect(toWhole(atomic, decimals)).toBe(amount)
})

test.each([
  '',
  '.',
  '1.',
  '.5',
  '-1',
  '+1',
  '1e3',
  '01',
  '1,5',
  ' 1',
  '1 ',
  '0x10',
  'NaN',
  '１',
  '1'.repeat(61),
])('"%s" is not an amount', (amount) => {
  expect(isDecimal(amount)).toBe(false)
  expect(() => toAtomic(amount, 6)).toThrow(RangeError)
})

test('an amount with more decimals than the asset has is rejected, even if they are zeros', () => {
  expect(() => toAtomic('0.0000001', 6)).toThrow('has 7 digits after the point, and the asset has 6')
  expect(() => toAtomic('0.0000000', 6)).toThrow(RangeError)
})
