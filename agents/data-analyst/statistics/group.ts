import { median } from 'simple-statistics'
import type { DateColumn, NumberColumn } from '../table/columns.ts'
import type { Granularity } from '../table/dates.ts'

export type Aggregate = 'sum' | 'mean' | 'median' | 'min' | 'max' | 'count'
export type Period = Exclude<Granularity, 'time'> | 'week' | 'hour'

const averaged =
  /price|rate|ratio|percent|pct|%|avg|average|mean|median|temp|age\b|score|rating|speed|height|weight|index|humid|pressure|bmi|duration|share|margin|grade|level|latency|size|per[ _]/i
const added =
  /sales|revenue|amount|units|quantity|qty|count|cost|expense|profit|income|order|visit|view|click|user|download|total|sum|turnover|umsatz|spen[dt]|budget|volume|rain|precip|distance|death|case|birth|energy|kwh|ticket|sold|purchase|payment|tax|fee|hours|goals|points|sessions|signups|calls/i

/** Chooses how to aggregate a measure: sales are summed, for example, and temperatures are averaged. */
export function aggregateOf(column: Pick<NumberColumn, 'name' | 'sign'>): 'sum' | 'mean' {
  return column.sign !== '%' && added.test(column.name) && !averaged.test(column.name) ? 'sum' : 'mean'
}

export function aggregated(values: number[], aggregate: Aggregate): number {
  if (aggregate === 'count') return values.length
  if (aggregate === 'median') return median(values)
  if (aggregate === 'min') return values.reduce((a, b) => Math.min(a, b))
  if (aggregate === 'max') return values.reduce((a, b) => Math.max(a, b))
  const sum = values.reduce((a, b) => a + b, 0)
  return aggregate === 'sum' ? sum : sum / values.length
}

/** Groups values in order of appearance. A measure of `undefined` counts rows. */
export function grouped<Key>(
  keys: (Key | null)[],
  values: (number | null)[] | undefined,
): Map<Key, number[]> {
  const groups = new Map<Key, number[]>()
  for (const [row, key] of keys.entries()) {
    const value = values ? values[row] : 1
    if (key === null || value === null || value === undefined) continue
    const group = groups.get(key)
    if (group) group.push(value)
    else groups.set(key, [value])
  }
  return groups
}

const dayMs = 86_400_000
const pointsMax = 400

/** Start of the period that contains a moment, in UTC. */
export function startOf(at: number, period: Period): number {
  const date = new Date(at)
  const [y, m, d] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  if (period === 'year') return Date.UTC(y, 0)
  if (period === 'quarter') return Date.UTC(y, m - (m % 3))
  if (period === 'month') return Date.UTC(y, m)
  if (period === 'hour') return Math.floor(at / 3_600_000) * 3_600_000
  // Weeks start on Monday.
  if (period === 'week') return Date.UTC(y, m, d - ((date.getUTCDay() + 6) % 7))
  return Date.UTC(y, m, d)
}

/** Chooses a period with enough points to show a trend and few enough to be readable. */
export function fittingPeriod(date: DateColumn): Period {
  let [first, last] = [Infinity, -Infinity]
  for (const at of date.values) if (at !== null) [first, last] = [Math.min(first, at), Math.max(last, at)]
  const days = (last - first) / dayMs
  const grain = date.granularity
  if (grain === 'year' || grain === 'quarter' || grain === 'month')
    return days > 31 * pointsMax ? 'year' : grain
  if (grain === 'time' && days <= 4) return 'hour'
  const whole = wholePeriod(date.values)
  if (whole !== undefined && days <= 31 * pointsMax) return whole
  // Monthly figures often have one date per month.
  if (days > 45 && distinctDays(date) === distinct(date, 'month')) return 'month'
  if (days <= 92) return 'day'
  if (days <= 500 && distinctDays(date) > 150) return 'week'
  if (days <= 500 && distinctDays(date) <= 60) return 'day'
  return days <= 30 * pointsMax ? 'month' : 'year'
}

/** Returns `month` if every date is the first of a month, and likewise `quarter` and `year`. */
export function wholePeriod(values: (number | null)[]): 'year' | 'quarter' | 'month' | undefined {
  const starts = new Set(values.filter((at) => at !== null))
  if (starts.size < 2) return undefined
  return (['year', 'quarter', 'month'] as const).find((period) =>
    [...starts].every((at) => startOf(at, period) === at),
  )
}

const distinct = (date: DateColumn, period: Period) =>
  new Set(date.values.flatMap((at) => (at === null ? [] : [startOf(at, period)]))).size
const distinctDays = (date: DateColumn) => distinct(date, 'day')

/** One point per period, in chronological order. */
export function byPeriod(
  date: DateColumn,
  values: (number | null)[] | undefined,
  aggregate: Aggregate,
  period: Period = fittingPeriod(date),
): { points: [at: number, value: number][]; period: Period } {
  const starts = date.values.map((at) => (at === null ? null : startOf(at, period)))
  const points = [...grouped(starts, values)].map(([at, group]): [number, number] => [
    at,
    aggregated(group, aggregate),
  ])
  return { points: points.sort((a, b) => a[0] - b[0]), period }
}
