import { parse } from 'csv-parse/sync'

/** Values at regular intervals, oldest first. */
export interface Series {
  name: string
  /** Other numeric columns of the table. */
  others: string[]
  unit: Unit
  /** Steps per season; 1 for no seasonality. */
  season: number
  /** Milliseconds since 1970, UTC. */
  times: number[]
  values: number[]
}

export type Unit = 'day' | 'week' | 'month' | 'quarter' | 'year'

/** A fault in the table. The message is for the caller. */
export class SeriesFault extends Error {
  override readonly name = 'SeriesFault'
}

/** Duplicate dates without an instruction on how to combine them. */
export class DuplicateDates extends SeriesFault {}

/** Whether to combine rows with the same date into their sum or their mean. */
export type Duplicates = 'sum' | 'mean'

const bounds = { bytes: 1024 * 1024, rows: 2000, least: 8 }
const dayMs = 86_400_000
const seasons: Record<Unit, number> = { day: 7, week: 52, month: 12, quarter: 4, year: 1 }

export interface Wishes {
  /** Name of the column to forecast. */
  column?: string | undefined
  duplicates?: Duplicates | undefined
  /** Text that may name the column. */
  said?: string
}

/** @throws SeriesFault */
export function readSeries(csv: string, { column: wanted, duplicates, said = '' }: Wishes = {}): Series {
  if (csv.length > bounds.bytes) throw new SeriesFault('The table is larger than 1 MiB.')
  const rows = tableOf(csv)
  const [header = [], ...body] = rows
  if (body.length > bounds.rows) throw new SeriesFault(`The table has more than ${bounds.rows} rows.`)
  const dateColumn = header.findIndex(
    (_, at) => body.length > 0 && body.every((row) => timeOf(row[at]) !== undefined),
  )
  if (dateColumn === -1)
    throw new SeriesFault('No column has a date in every row: write 2026-11-21, 2026-11, 2026-Q4 or 2026.')
  const numeric = header.flatMap((name, at) =>
    at !== dateColumn && body.every((row) => numberOf(row[at]) !== undefined) ? [{ name, at }] : [],
  )
  const value =
    wanted === undefined
      ? (firstNamed(numeric, said) ?? numeric.find(({ name }) => !isIdentifier(name)) ?? numeric[0])
      : numeric.find(({ name }) => sameWord(name, wanted))
  if (value === undefined)
    throw new SeriesFault(
      numeric.length === 0
        ? 'No column other than the date has a number in every row.'
        : `There is no column of numbers named "${wanted}"; there are: ${numeric.map(({ name }) => name).join(', ')}.`,
    )
  const points = onePerDate(
    body
      .map((row) => ({ time: timeOf(row[dateColumn]) ?? 0, value: numberOf(row[value.at]) ?? 0 }))
      .sort((a, b) => a.time - b.time),
    value.name,
    duplicates,
  )
  if (points.length < bounds.least)
    throw new SeriesFault(`${points.length} rows are too few for a forecast; send at least ${bounds.least}.`)
  const times = points.map(({ time }) => time)
  const unit = unitOf(times)
  return {
    name: value.name,
    others: numeric
      .filter((column) => column !== value && !isIdentifier(column.name))
      .map(({ name }) => name),
    unit,
    season: seasons[unit],
    times,
    values: points.map((point) => point.value),
  }
}

interface Point {
  time: number
  value: number
}

/** @throws DuplicateDates */
function onePerDate(points: Point[], column: string, duplicates: Duplicates | undefined): Point[] {
  const byDate = Map.groupBy(points, ({ time }) => time)
  if (byDate.size === points.length) return points
  if (duplicates === undefined) {
    const [time = 0, rows = []] = [...byDate].find(([, found]) => found.length > 1) ?? []
    throw new DuplicateDates(
      `${rows.length} rows have the date ${labelOf(time, 'day')}. Shall I add up ${column} over the rows of each date? ` +
        'Answer "yes", or "average", or send another table.',
    )
  }
  return [...byDate].map(([time, rows]) => {
    const sum = rows.reduce((total, { value }) => total + value, 0)
    return { time, value: duplicates === 'sum' ? sum : sum / rows.length }
  })
}

/** The time of the step that is this many intervals after the last one. */
export function timeAfter({ times, unit }: Series, steps: number): number {
  const last = times.at(-1) ?? 0
  if (unit === 'day' || unit === 'week') return last + steps * dayMs * (unit === 'day' ? 1 : 7)
  const date = new Date(last)
  const months = { month: 1, quarter: 3, year: 12 }[unit] * steps
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1)
}

export function labelOf(time: number, unit: Unit): string {
  const iso = new Date(time).toISOString()
  if (unit === 'year') return iso.slice(0, 4)
  if (unit === 'month') return iso.slice(0, 7)
  if (unit === 'quarter') return `${iso.slice(0, 4)}-Q${Math.floor(Number(iso.slice(5, 7)) / 3 + 0.7)}`
  return iso.slice(0, 10)
}

function tableOf(csv: string): string[][] {
  const delimiter = [',', ';', '\t'].find((one) => (csv.split('\n', 1)[0] ?? '').includes(one)) ?? ','
  try {
    return parse(csv, { delimiter, trim: true, skip_empty_lines: true, bom: true, relax_column_count: true })
  } catch {
    throw new SeriesFault('The input is not a CSV table.')
  }
}

/** Parses ISO days and months, quarters and years as their first day. */
function timeOf(text: string | undefined): number | undefined {
  const day = /^(\d{4})(?:-(\d\d)(?:-(\d\d))?)?$/.exec(text ?? '')
  if (day !== null) {
    const [, year, month = '01', date = '01'] = day
    const time = Date.parse(`${year}-${month}-${date}T00:00:00Z`)
    // An invalid day rolls over to the next month or gives NaN.
    if (Number.isNaN(time)) return undefined
    return new Date(time).toISOString().startsWith(`${year}-${month}-${date}`) ? time : undefined
  }
  const quarter = /^(\d{4})-?Q([1-4])$/i.exec(text ?? '')
  return quarter === null ? undefined : Date.UTC(Number(quarter[1]), (Number(quarter[2]) - 1) * 3, 1)
}

function numberOf(text: string | undefined): number | undefined {
  const plain = (text ?? '').replace(/^[€$£]\s?/, '').replace(/(\d)[,\s](?=\d{3}\b)/g, '$1')
  return /^-?\d{1,15}(\.\d{1,15})?%?$/.test(plain) ? Number.parseFloat(plain) : undefined
}

/** @throws SeriesFault if the steps are not regular */
function unitOf(times: number[]): Unit {
  const gaps = times.slice(1).map((time, at) => Math.round((time - (times[at] ?? 0)) / dayMs))
  const within = (least: number, most: number) => gaps.every((gap) => gap >= least && gap <= most)
  if (within(1, 1)) return 'day'
  if (within(7, 7)) return 'week'
  if (within(28, 31)) return 'month'
  if (within(90, 92)) return 'quarter'
  if (within(365, 366)) return 'year'
  const wrong = gaps.findIndex((gap) => gap !== gaps[0] && Math.abs(gap - (gaps[0] ?? 0)) > 3)
  const where = wrong === -1 ? '' : ` (look after ${labelOf(times[wrong] ?? 0, 'day')})`
  throw new SeriesFault(
    `The dates are not one day, week, month, quarter or year apart, or one is missing${where}.`,
  )
}

/** Whether the numbers are row identifiers rather than measurements. */
const isIdentifier = (name: string) =>
  /^(?:#|no\.?|nr\.?|row|index)$|(?:^|[\s_-])(?:id|key)$/i.test(name.trim())

/** The column that the text names first, ignoring separators between words. */
export function firstNamed<Column extends { name: string }>(
  columns: Column[],
  said: string,
): Column | undefined {
  const words = said
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .join(' ')
  const named = columns.flatMap((column) => {
    const name = column.name
      .toLowerCase()
      .split(/[^\p{L}\p{N}]+/u)
      .filter(Boolean)
      .join(' ')
    const at = name === '' ? -1 : ` ${words} `.indexOf(` ${name} `)
    return at === -1 ? [] : [{ column, at }]
  })
  return named.toSorted((a, b) => a.at - b.at)[0]?.column
}

const sameWord = (one: string, other: string) => one.trim().toLowerCase() === other.trim().toLowerCase()
