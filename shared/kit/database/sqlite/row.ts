/** A row as the driver returns it. */
export type Row = Record<string, unknown>

/** @throws TypeError if the column does not contain a string */
export function textIn(row: Row | undefined, column: string): string {
  const value = row?.[column]
  if (typeof value === 'string') return value
  throw new TypeError(`The column ${column} is not a text`)
}

/** @throws TypeError if the column does not contain a number */
export function integerIn(row: Row | undefined, column: string): number {
  const value = row?.[column]
  if (typeof value === 'number') return value
  throw new TypeError(`The column ${column} is not a number`)
}

/** @throws TypeError if the column does not contain bytes */
export function bytesIn(row: Row | undefined, column: string): Uint8Array {
  const value = row?.[column]
  if (value instanceof Uint8Array) return value
  throw new TypeError(`The column ${column} does not hold bytes`)
}
