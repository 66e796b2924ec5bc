import { CsvError, parse } from 'csv-parse/sync'
import { bounds, clip, TableFault } from '../bounds.ts'
import { detectDelimiter } from './delimiter.ts'
import { hasHeader } from './header.ts'

export interface Table {
  /** Column names, unique and not empty. */
  names: string[]
  rows: string[][]
  delimiter: string
  /** Irregularities in the input, for the report. */
  notes: string[]
}

/** @throws TableFault with the reason if the text is not a table */
export function readCsv(csv: string): Table {
  if (csv.length > bounds.bytesMax)
    throw new TableFault(`The table is larger than ${bounds.bytesMax / 1024 / 1024} MiB.`)
  const delimiter = detectDelimiter(csv)
  const lines = parsed(csv, delimiter)
  const first = lines[0]
  if (!first) throw new TableFault('The table is empty.')
  const width = first.length
  if (width > bounds.columnsMax)
    throw new TableFault(`The table has ${width} columns; at most ${bounds.columnsMax} are read.`)
  if (lines.length > bounds.rowsMax + 1 || lines.length * width > bounds.cellsMax) {
    throw new TableFault(
      `The table has more than ${bounds.rowsMax.toLocaleString('en')} rows or ${bounds.cellsMax.toLocaleString('en')} cells.`,
    )
  }
  const headed = hasHeader(lines)
  const notes = headed
    ? []
    : ['The table has no header line; its columns are called column 1, column 2 and so on.']
  const rows = headed ? lines.slice(1) : lines
  if (rows.length === 0) throw new TableFault('The table has a header line and no rows.')
  notes.push(...evenOut(rows, width, headed ? 2 : 1))
  return {
    names: headed ? uniqueNames(first) : first.map((_cell, at) => `column ${at + 1}`),
    rows,
    delimiter,
    notes,
  }
}

function parsed(csv: string, delimiter: string): string[][] {
  try {
    return parse(csv, {
      delimiter,
      bom: true,
      trim: true,
      skip_empty_lines: true,
      skip_records_with_empty_values: true,
      relax_column_count: true,
      max_record_size: 1024 * 1024,
      to: bounds.rowsMax + 2,
    })
  } catch (error) {
    if (error instanceof CsvError) throw new TableFault(`This is not readable as CSV: ${reasonOf(error)}`)
    throw error
  }
}

function reasonOf(error: CsvError): string {
  const line = typeof error['lines'] === 'number' ? ` (line ${error['lines']})` : ''
  if (error.code === 'CSV_QUOTE_NOT_CLOSED') return `a quoted field is opened and never closed${line}.`
  if (error.code === 'CSV_INVALID_CLOSING_QUOTE')
    return `text follows a closing quote inside a field${line}; quotes inside a field are doubled.`
  if (error.code === 'INVALID_OPENING_QUOTE')
    return `a quote appears inside a field that is not quoted${line}.`
  if (error.code === 'CSV_MAX_RECORD_SIZE')
    return `one row is larger than 1 MiB${line}; is a quote never closed?`
  return `${clip(error.message, 200)}${line}.`
}

/** Pads or cuts rows with a different length and adds a note. If many rows differ, the text is not a table. */
function evenOut(rows: string[][], width: number, firstLine: number): string[] {
  const uneven = rows.flatMap((row, at) => (row.length === width ? [] : [at]))
  const first = uneven[0]
  if (first === undefined) return []
  const said = `row ${first + firstLine} has ${rows[first]?.length} fields where the first line has ${width}`
  if (uneven.length > Math.max(1, rows.length / 10)) {
    throw new TableFault(`The rows have different lengths: ${said}, and ${uneven.length - 1} more like it.`)
  }
  for (const at of uneven)
    rows[at] = Array.from({ length: width }, (_none, column) => rows[at]?.[column] ?? '')
  return [
    `${uneven.length === 1 ? 'One row was' : `${uneven.length} rows were`} not as long as the others (${said}); missing fields count as missing, extra ones are left out.`,
  ]
}

function uniqueNames(header: string[]): string[] {
  const seen = new Map<string, number>()
  return header.map((cell, at) => {
    const name = clip(cell.replace(/\s+/g, ' ').trim(), bounds.nameMaxChars) || `column ${at + 1}`
    const times = (seen.get(name) ?? 0) + 1
    seen.set(name, times)
    return times === 1 ? name : `${name} (${times})`
  })
}
