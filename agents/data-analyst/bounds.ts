/** What a table may be at most. More is declined with the reason. */
export const bounds = {
  bytesMax: 16 * 1024 * 1024,
  rowsMax: 200_000,
  columnsMax: 200,
  cellsMax: 4_000_000,
  /** Longest name of a column that is shown. */
  nameMaxChars: 60,
  /** Longest value that is shown. */
  valueMaxChars: 80,
} as const

/** The table cannot be read or is too large; the message says why and what would help. */
export class TableFault extends Error {}

export const clip = (text: string, maxChars: number = bounds.valueMaxChars) =>
  text.length > maxChars ? `${text.slice(0, maxChars - 1)}…` : text
