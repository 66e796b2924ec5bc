import { linearRegression } from 'simple-statistics'
import {
  type Column,
  type DateColumn,
  isCategory,
  isDate,
  isMeasure,
  type NumberColumn,
  type WordColumn,
} from '../table/columns.ts'
import { clean } from './describe.ts'
import { aggregateOf, byPeriod, type Period, startOf } from './group.ts'

/** Maximum number of numeric columns for which all pairs are compared. */
const columnsCompared = 30
/** Minimum number of pairs. With fewer, a correlation is too often a coincidence. */
export const pairsMin = 6

export interface Correlation {
  a: string
  b: string
  r: number
  rows: number
}

/** Computes Pearson's r for all pairs of measures, strongest first. */
export function correlations(columns: Column[]): Correlation[] {
  const measures = columns.filter(isMeasure).slice(0, columnsCompared)
  const found = measures.flatMap((a, at) =>
    measures.slice(at + 1).flatMap((b) => {
      const { r, rows } = pearson(a.values, b.values)
      return r === undefined || rows < pairsMin ? [] : [{ a: a.name, b: b.name, r: clean(r), rows }]
    }),
  )
  return found.sort((x, y) => Math.abs(y.r) - Math.abs(x.r))
}

/** Computes the correlation in one pass over the rows with both values. */
export function pearson(a: (number | null)[], b: (number | null)[]): { r?: number; rows: number } {
  let rows = 0
  let [meanA, meanB, squareA, squareB, product] = [0, 0, 0, 0, 0]
  for (let at = 0; at < a.length; at += 1) {
    const x = a[at]
    const y = b[at]
    if (x === null || x === undefined || y === null || y === undefined) continue
    rows += 1
    const [fromA, fromB] = [x - meanA, y - meanB]
    meanA += fromA / rows
    meanB += fromB / rows
    squareA += fromA * (x - meanA)
    squareB += fromB * (y - meanB)
    product += fromA * (y - meanB)
  }
  const scale = Math.sqrt(squareA) * Math.sqrt(squareB)
  return scale > 0 ? { r: Math.max(-1, Math.min(1, product / scale)), rows } : { rows }
}

export interface Trend {
  date: string
  measure: string
  aggregate: 'sum' | 'mean'
  period: string
  periods: number
  first: number
  last: number
  /** Change along the fitted line relative to its start; absent when the start is zero or the sign changes. */
  change?: number
  /** Correlation of the periods with the line, -1 to 1. */
  r: number
  /** Year-over-year changes, oldest first, if the latest two years are complete and consistent. */
  yearly?: number[]
}

const periodsMin = 3
/** Fraction of the latest year's periods that must have changed in the same direction as the whole year. */
const yearlyAgreement = 0.75

/** Finds the trend of each measure over the first date column, clearest first. */
export function trends(columns: Column[]): Trend[] {
  const date = columns.find(isDate)
  if (!date) return []
  return columns
    .filter(isMeasure)
    .flatMap((measure) => trendOf(date, measure) ?? [])
    .sort((x, y) => Math.abs(y.r) - Math.abs(x.r))
}

function trendOf(date: DateColumn, measure: NumberColumn): Trend | undefined {
  const aggregate = aggregateOf(measure)
  const { points, period } = byPeriod(date, measure.values, aggregate)
  const first = points[0]
  const last = points.at(-1)
  if (points.length < periodsMin || !first || !last) return undefined
  const { r } = pearson(
    points.map(([at]) => at),
    points.map(([, value]) => value),
  )
  if (r === undefined) return undefined
  const { m, b } = linearRegression(points.map(([at, value]) => [(at - first[0]) / 86_400_000, value]))
  const end = b + (m * (last[0] - first[0])) / 86_400_000
  return {
    date: date.name,
    measure: measure.name,
    aggregate,
    period,
    periods: points.length,
    first: clean(first[1]),
    last: clean(last[1]),
    ...(b > 0 && end > 0 && { change: clean(end / b - 1) }),
    r: clean(r),
    ...yearlyOf(points, period),
  }
}

/** Compares the same months of two years, because seasonality hides growth from a straight line. */
function yearlyOf(points: [at: number, value: number][], period: Period): Pick<Trend, 'yearly'> {
  const season = { month: 12, quarter: 4 }[period as string]
  if (season === undefined || points.length < 2 * season || !areConsecutive(points, period)) return {}
  const values = points.map(([, value]) => value)
  const count = Math.floor(values.length / season)
  const years = Array.from({ length: count }, (_, at) => {
    const end = values.length - (count - 1 - at) * season
    return values.slice(end - season, end)
  })
  const totals = years.map((year) => year.reduce((a, b) => a + b, 0))
  if (totals.some((total) => total <= 0)) return {}
  const yearly = totals.slice(1).map((total, at) => clean(total / (totals[at] as number) - 1))
  const [before = [], newest = []] = years.slice(-2)
  const direction = Math.sign(yearly.at(-1) ?? 0)
  const agreeing = newest.filter((value, at) => Math.sign(value - (before[at] as number)) === direction)
  return direction !== 0 && agreeing.length >= yearlyAgreement * season ? { yearly } : {}
}

function areConsecutive(points: [at: number, value: number][], period: Period): boolean {
  const longestMs = (period === 'month' ? 31 : 92) * 86_400_000
  return points.every(
    ([at], index) => index === 0 || startOf(at - longestMs, period) <= (points[index - 1]?.[0] ?? 0),
  )
}

export interface Difference {
  category: string
  measure: string
  /** Fraction of the variance that the groups explain (eta squared). */
  explained: number
  highest: { value: string; mean: number }
  lowest: { value: string; mean: number }
}

/** Finds the groupings and measures with the largest differences, clearest first. */
export function differences(columns: Column[]): Difference[] {
  const categories = columns.filter(isCategory).slice(0, columnsCompared)
  const measures = columns.filter(isMeasure).slice(0, columnsCompared)
  return categories
    .flatMap((category) => measures.flatMap((measure) => differenceOf(category, measure) ?? []))
    .sort((x, y) => y.explained - x.explained)
}

function differenceOf(category: WordColumn, measure: NumberColumn): Difference | undefined {
  const groups = new Map<string, { sum: number; count: number }>()
  let [sum, squares, count] = [0, 0, 0]
  for (const [row, value] of measure.values.entries()) {
    const name = category.values[row]
    if (value === null || name === null || name === undefined) continue
    const group = groups.get(name) ?? { sum: 0, count: 0 }
    groups.set(name, { sum: group.sum + value, count: group.count + 1 })
    sum += value
    squares += value * value
    count += 1
  }
  // Groups of one row would explain all variance, which means nothing.
  if (groups.size < 2 || count < groups.size * 3) return undefined
  const mean = sum / count
  const total = squares - sum * mean
  const means = [...groups].map(([value, group]) => ({
    value,
    mean: group.sum / group.count,
    count: group.count,
  }))
  const between = means.reduce((all, group) => all + group.count * (group.mean - mean) ** 2, 0)
  const [lowest, highest] = [means.sort((a, b) => a.mean - b.mean)[0], means.at(-1)]
  if (!(total > 0) || !lowest || !highest) return undefined
  return {
    category: category.name,
    measure: measure.name,
    explained: clean(Math.min(1, between / total)),
    highest: { value: highest.value, mean: clean(highest.mean) },
    lowest: { value: lowest.value, mean: clean(lowest.mean) },
  }
}
