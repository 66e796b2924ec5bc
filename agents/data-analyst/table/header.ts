import { dateOf } from './dates.ts'
import { isMissing } from './missing.ts'
import { looksNumeric } from './numbers.ts'

/** The first line is a header unless it has a number or date in the same columns as the rows. */
export function hasHeader(lines: string[][]): boolean {
  const [first, ...rest] = lines.slice(0, 20)
  if (!first || rest.length === 0) return true
  if (first.some((cell) => isValue(cell) && !/^(?:1[89]|2[01])\d\d$/.test(cell))) return false
  // Over text columns, a header does not repeat any value of its column.
  return !first.every((cell, at) => cell !== '' && rest.some((row) => row[at] === cell))
}

const isValue = (cell: string) =>
  !isMissing(cell) && (looksNumeric(cell) || dateOf(cell, 'day-first') !== undefined)
