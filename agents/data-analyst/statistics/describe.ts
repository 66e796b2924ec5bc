import { mean, quantileSorted, sampleStandardDeviation } from 'simple-statistics'
import { clip } from '../bounds.ts'
import {
  type Column,
  type DateColumn,
  type NumberColumn,
  present,
  type WordColumn,
} from '../table/columns.ts'
import { wholePeriod } from './group.ts'

export interface NumberFigures {
  count: number
  missing: number
  sum: number
  mean: number
  median: number
  /** Sample standard deviation; absent if there are fewer than two values. */
  sd?: number
  q1: number
  q3: number
  min: number
  max: number
  /** Number of values beyond 1.5 interquartile ranges (Tukey). */
  outliers: { count: number; below: number; above: number; examples: { row: number; value: number }[] }
}

export interface WordFigures {
  count: number
  missing: number
  distinct: number
  top: { value: string; count: number; share: number }[]
}

export interface DateFigures {
  count: number
  missing: number
  first: string
  last: string
  granularity: DateColumn['granularity']
}

export type Figures = NumberFigures | WordFigures | DateFigures | { count: 0; missing: number }

/** Computes the statistics of one column. Figures that cannot be computed are absent rather than NaN. */
export function describe(column: Column): Figures {
  if (column.missing === column.values.length) return { count: 0, missing: column.missing }
  if (column.type === 'number') return describeNumbers(column)
  if (column.type === 'date') return describeDates(column)
  if (column.type === 'empty') return { count: 0, missing: column.missing }
  return describeWords(column)
}

export function describeNumbers(column: NumberColumn): NumberFigures {
  const values = present(column.values)
  const sorted = Float64Array.from(values).sort() as unknown as number[]
  const at = (share: number) => quantileSorted(sorted, share)
  const [q1, q3] = [at(0.25), at(0.75)]
  const average = mean(values)
  return {
    count: values.length,
    missing: column.missing,
    sum: clean(average * values.length),
    mean: clean(average),
    median: clean(at(0.5)),
    ...(values.length > 1 && { sd: clean(sampleStandardDeviation(values)) }),
    q1: clean(q1),
    q3: clean(q3),
    min: at(0),
    max: at(1),
    outliers: outliersOf(column, q1, q3),
  }
}

const outliersShown = 5
/** Minimum number of rows for which outliers are meaningful. */
export const outlierRowsMin = 8

function outliersOf(column: NumberColumn, q1: number, q3: number): NumberFigures['outliers'] {
  const width = q3 - q1
  const below = clean(q1 - 1.5 * width)
  const above = clean(q3 + 1.5 * width)
  const none = { count: 0, below, above, examples: [] }
  // If the interquartile range were zero, every other value would be an outlier.
  if (width === 0 || column.values.length < outlierRowsMin || column.identifier) return none
  const found = column.values.flatMap((value, row) =>
    value !== null && (value < below || value > above) ? [{ row: row + 1, value }] : [],
  )
  const distance = (value: number) => Math.max(below - value, value - above)
  const examples = found.toSorted((a, b) => distance(b.value) - distance(a.value)).slice(0, outliersShown)
  return { count: found.length, below, above, examples }
}

const topShown = 10

function describeWords(column: WordColumn): WordFigures {
  const counts = countsOf(column.values)
  const count = column.values.length - column.missing
  const top = [...counts]
    .sort((a, b) => b[1] - a[1])
    .slice(0, topShown)
    .map(([value, times]) => ({ value: clip(value), count: times, share: clean(times / count) }))
  return { count, missing: column.missing, distinct: counts.size, top }
}

export function countsOf(values: (string | null)[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const value of values) if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

function describeDates(column: DateColumn): DateFigures {
  const values = present(column.values)
  const first = values.reduce((least, value) => Math.min(least, value), Infinity)
  const last = values.reduce((most, value) => Math.max(most, value), -Infinity)
  const text = (at: number) => new Date(at).toISOString().slice(0, column.granularity === 'time' ? 16 : 10)
  return {
    count: values.length,
    missing: column.missing,
    first: text(first),
    last: text(last),
    granularity: column.granularity === 'day' ? (wholePeriod(values) ?? 'day') : column.granularity,
  }
}

/** Rounds to 12 digits to remove binary rounding noise. */
export const clean = (value: number) => Number(value.toPrecision(12))
