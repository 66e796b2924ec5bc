import { dateOf } from './dates.ts'
import { isMissing } from './missing.ts'
import { looksNumeric } from './numbers.ts'

/** Whether the first line is a header: it has no number or date where the rows have one. */
export function hasHeader(lines: string[][]): boolean {
  const [first, ...rest] = lines.slice(0, 20)
  if (!first || rest.length === 0) return true
  if (first.some((cell) => isValue(cell) && !/^(?:1[89]|2[01])\d\d$/.test(cell))) return false
  // A header above a text column does not repeat any value of the column.
  return !first.every((cell, at) => cell !== '' && rest.some((row) => row[at] === cell))
}

const isValue = (cell: string) =>
  !isMissing(cell) && (looksNumeric(cell) || dateOf(cell, 'day-first') !== undefined)
