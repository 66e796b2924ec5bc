import type { Column } from './columns.ts'
import { dateOf, dayOrder, type Granularity } from './dates.ts'
import { isMissing } from './missing.ts'
import { looksNumeric, numberOf, numberStyle } from './numbers.ts'
import type { Table } from './read-csv.ts'

/** Fraction of the cells that must match a type for the column to have this type. */
const enough = 0.9
const misfitsShown = 5

/** Determines the type and the values of each column. */
export function inferColumns(table: Table): Column[] {
  return table.names.map((name, at) =>
    inferColumn(
      name,
      table.rows.map((row) => row[at] ?? ''),
    ),
  )
}

export function inferColumn(name: string, cells: string[]): Column {
  const filled = cells.filter((cell) => !isMissing(cell))
  if (filled.length === 0)
    return { name, type: 'empty', values: cells.map(() => null), missing: cells.length, misfits: [] }
  return (
    booleans(name, cells, filled) ??
    dates(name, cells, filled) ??
    numbers(name, cells, filled) ??
    words(name, cells)
  )
}

const pairs = [
  ['true', 'false'],
  ['yes', 'no'],
  ['y', 'n'],
  ['t', 'f'],
]

function booleans(name: string, cells: string[], filled: string[]): Column | undefined {
  const seen = new Set<string>()
  for (const cell of filled) {
    seen.add(cell.toLowerCase())
    if (seen.size > 2) return undefined
  }
  if (!pairs.some((pair) => [...seen].every((word) => pair.includes(word)))) return undefined
  const values = cells.map((cell) => (isMissing(cell) ? null : cell.toLowerCase()))
  return {
    name,
    type: 'boolean',
    values,
    distinct: seen.size,
    missing: cells.length - filled.length,
    misfits: [],
  }
}

function dates(name: string, cells: string[], filled: string[]): Column | undefined {
  if (isYears(name, filled)) {
    const values = cells.map((cell) => (isMissing(cell) ? null : Date.UTC(Number(cell), 0, 1)))
    return {
      name,
      type: 'date',
      values,
      granularity: 'year',
      missing: cells.length - filled.length,
      misfits: [],
    }
  }
  const order = dayOrder(filled)
  const read = fitting(cells, filled, (cell) => dateOf(cell, order))
  if (!read) return undefined
  const values = read.values.map((date) => date?.at ?? null)
  const granularity = finest(read.values.flatMap((date) => (date ? [date.granularity] : [])))
  return { name, type: 'date', values, granularity, missing: read.missing, misfits: read.misfits }
}

const grains: Granularity[] = ['year', 'quarter', 'month', 'day', 'time']

function finest(found: Granularity[]): Granularity {
  return grains[found.reduce((best, grain) => Math.max(best, grains.indexOf(grain)), 0)] ?? 'day'
}

function isYears(name: string, filled: string[]): boolean {
  return (
    /(?:^|[\W_])(?:year|yr|jahr|année|año|anno)(?:$|[\W_])/i.test(name) &&
    filled.every((cell) => /^(?:1[5-9]|2[01])\d\d$/.test(cell))
  )
}

function numbers(name: string, cells: string[], filled: string[]): Column | undefined {
  // 00123 is a code: a number would lose its leading zeros.
  if (filled.some((cell) => /^0\d+$/.test(cell))) return undefined
  const style = numberStyle(filled.filter(looksNumeric))
  const read = fitting(cells, filled, (cell) => numberOf(cell, style))
  if (!read) return undefined
  const sign = /[%$€£¥₹]/.exec(filled.find(looksNumeric) ?? '')?.[0]
  const identifier = isIdentifier(name, read.values)
  return { name, type: 'number', ...read, identifier, ...(sign && { sign }) }
}

function isIdentifier(name: string, values: (number | null)[]): boolean {
  const named =
    /(?:^|[\W_])(?:id|nr|no|num|index|idx|key|zip|plz|phone)\.?$/i.test(name) || /[a-z]I[dD]$/.test(name)
  const given = values.filter((value) => value !== null)
  if (!given.every(Number.isInteger)) return false
  if (named) return true
  // 1, 2, 3 … over all rows is a row number.
  return given.length >= 10 && given.every((value, at) => value === (given[0] ?? 0) + at)
}

function words(name: string, cells: string[]): Column {
  const values = cells.map((cell) => (isMissing(cell) ? null : cell))
  const given = values.filter((value) => value !== null)
  return {
    name,
    type: 'text',
    values,
    distinct: new Set(given).size,
    missing: cells.length - given.length,
    misfits: [],
  }
}

/** Parses all cells. Returns undefined if too many do not match. */
function fitting<Value>(cells: string[], filled: string[], read: (cell: string) => Value | undefined) {
  const misfits: string[] = []
  let missing = cells.length - filled.length
  const values = cells.map((cell) => {
    if (isMissing(cell)) return null
    const value = read(cell)
    if (value !== undefined) return value
    missing += 1
    if (misfits.length < misfitsShown) misfits.push(cell)
    return null
  })
  return cells.length - missing >= filled.length * enough ? { values, missing, misfits } : undefined
}
