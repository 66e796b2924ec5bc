import type { Granularity } from './dates.ts'

interface AnyColumn {
  name: string
  missing: number
  /** Cells that do not match the column type; they count as missing. */
  misfits: string[]
}

export interface NumberColumn extends AnyColumn {
  type: 'number'
  values: (number | null)[]
  /** Percent sign or currency used in the table. */
  sign?: string
  /** Whether the column identifies rows. Such a column is excluded from sums and correlations. */
  identifier: boolean
}

export interface DateColumn extends AnyColumn {
  type: 'date'
  /** Milliseconds since 1970, UTC. */
  values: (number | null)[]
  granularity: Granularity
}

export interface WordColumn extends AnyColumn {
  type: 'text' | 'boolean'
  values: (string | null)[]
  distinct: number
}

export interface EmptyColumn extends AnyColumn {
  type: 'empty'
  values: null[]
}

export type Column = NumberColumn | DateColumn | WordColumn | EmptyColumn

export const isNumber = (column: Column): column is NumberColumn => column.type === 'number'
export const isMeasure = (column: Column): column is NumberColumn =>
  column.type === 'number' && !column.identifier
export const isDate = (column: Column): column is DateColumn => column.type === 'date'
export const isWord = (column: Column): column is WordColumn =>
  column.type === 'text' || column.type === 'boolean'

/** Whether the text values form groups: more than one, and few enough to compare. */
export const isCategory = (column: Column): column is WordColumn =>
  isWord(column) &&
  column.distinct >= 2 &&
  column.distinct <= Math.max(12, Math.min(60, column.values.length / 2))

export const present = <Value>(values: (Value | null)[]): Value[] => values.filter((value) => value !== null)
