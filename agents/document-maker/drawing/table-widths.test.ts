import { expect, test } from 'vitest'
import { columnWidths } from './table-widths.ts'

const sum = (widths: number[]): number => widths.reduce((total, width) => total + width, 0)

test('where all fits, columns are as wide as their text', () => {
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

test('what does not fit shares the room: the longest words fit, and long columns get more', () => {
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

test('where not even the words fit, the columns shrink and fill the room', () => {
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
