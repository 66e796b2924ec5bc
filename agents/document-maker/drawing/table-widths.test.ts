import { expect, test } from 'vitest'
import { columnWidths } from './table-widths.ts'

const sum = (widths: number[]): number => widths.reduce((total, width) => total + width, 0)

test('columns are as wide as their text if all fit', () => {
  expect(
    columnWidths(
      [
        { least: 10, most: 50 },
        { least: 10, most: 20 },
      ],
      100,
    ),
  ).toEqual([50, 20])
})

test('if not all columns fit, their longest words do, and long columns get more of the remaining width', () => {
  const widths = columnWidths(
    [
      { least: 20, most: 30 },
      { least: 30, most: 900 },
      { least: 10, most: 100 },
    ],
    200,
  )
  expect(sum(widths)).toBeCloseTo(200, 0)
  expect(widths[0]).toBeGreaterThanOrEqual(20)
  expect(widths[1]).toBeGreaterThan(widths[2] as number)
})

test('columns shrink to the available width if not even their longest words fit', () => {
  const widths = columnWidths(
    [
      { least: 500, most: 900 },
      { least: 20, most: 40 },
      { least: 90, most: 90 },
    ],
    100,
  )
  expect(sum(widths)).toBeCloseTo(100)
  for (const width of widths) expect(width).toBeGreaterThan(5)
})
