import { expect, test } from 'vitest'
import { dateOf, dayOrder } from './dates.ts'
import { inferColumn } from './infer.ts'
import { numberOf, numberStyle } from './numbers.ts'

test.each<[string[], number[]]>([
  [
    ['1', '-2.5', '3e2'],
    [1, -2.5, 300],
  ],
  [
    ['1,234.5', '12'],
    [1234.5, 12],
  ],
  [
    ['1.234,5', '12'],
    [1234.5, 12],
  ],
  [
    ['1,234', '5,678'],
    [1234, 5678],
  ],
  [
    ['1.234.567', '1.000.000'],
    [1234567, 1000000],
  ],
  [
    ['0,5', '1,25'],
    [0.5, 1.25],
  ],
  [
    ["1'234.50", '9'],
    [1234.5, 9],
  ],
  [
    ['1 234', '5 678'],
    [1234, 5678],
  ],
  [
    ['$1,200', '-$30'],
    [1200, -30],
  ],
  [
    ['12 %', '8%'],
    [12, 8],
  ],
  [
    ['(300)', '€ 20'],
    [-300, 20],
  ],
])('reads a column of %j as numbers', (cells, numbers) => {
  const style = numberStyle(cells)
  expect(cells.map((cell) => numberOf(cell, style))).toEqual(numbers)
})

test.each(['', 'abc', '1.2.3', '12 apples', '--5', '1,2,3', '0x10', 'Infinity', 'NaN'])(
  '%j is no number',
  (cell) => {
    expect(numberOf(cell, 'point')).toBeUndefined()
  },
)

test.each([
  ['2024-03-01', '2024-03-01T00:00'],
  ['2024/3/1', '2024-03-01T00:00'],
  ['01.03.2024', '2024-03-01T00:00'],
  ['1 March 2024', '2024-03-01T00:00'],
  ['March 1, 2024', '2024-03-01T00:00'],
  ['Mar 2024', '2024-03-01T00:00'],
  ['2024-03', '2024-03-01T00:00'],
  ['Q1 2024', '2024-01-01T00:00'],
  ['2024-03-01T14:30:00Z', '2024-03-01T14:30'],
  ['2024-03-01 14:30:00+02:00', '2024-03-01T12:30'],
  ['3/1/2024 2:30 PM', '2024-01-03T14:30'],
])('%s is a date', (cell, iso) => {
  expect(new Date(dateOf(cell, 'day-first')?.at ?? 0).toISOString().slice(0, 16)).toBe(iso)
})

test.each(['2024', '31.02.2024', '2024-13-01', 'March', '12:30', '1.5', 'May the 4th'])(
  '%j is not a date',
  (cell) => {
    expect(dateOf(cell, 'day-first')).toBeUndefined()
  },
)

test.each([
  [['13/04/2024', '01/02/2024'], 'day-first'],
  [['04/13/2024', '01/02/2024'], 'month-first'],
  [['01/02/2024'], 'month-first'],
  [['01.02.2024'], 'day-first'],
])('detects from the column whether the day comes first: %j', (cells, order) => {
  expect(dayOrder(cells)).toBe(order)
})

test.each([
  ['price', ['1', '', '2', 'NA'], { type: 'number', missing: 2, values: [1, null, 2, null] }],
  ['active', ['yes', 'No', ''], { type: 'boolean', missing: 1 }],
  ['year', ['2020', '2021'], { type: 'date', granularity: 'year' }],
  ['height', ['2020', '2021'], { type: 'number' }],
  ['zip', ['01234', '10115'], { type: 'text' }],
  ['customer_id', ['17', '4', '9'], { type: 'number', identifier: true }],
  ['note', ['', 'null', '-'], { type: 'empty', missing: 3 }],
  ['mixed', ['1', 'two', 'three'], { type: 'text', distinct: 3 }],
  ['amount', [...'1234567890'.split(''), 'oops'], { type: 'number', missing: 1, misfits: ['oops'] }],
])('detects the type of the column %s of %j', (name, cells, column) => {
  expect(inferColumn(name, cells)).toMatchObject(column)
})
