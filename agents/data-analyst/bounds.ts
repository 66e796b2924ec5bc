/** Limits on tables. The agent declines larger tables and gives the reason. */
export const bounds = {
  bytesMax: 16 * 1024 * 1024,
  rowsMax: 200_000,
  columnsMax: 200,
  cellsMax: 4_000_000,
  /** Maximum length of a displayed column name. */
  nameMaxChars: 60,
  /** Maximum length of a displayed value. */
  valueMaxChars: 80,
} as const

/** Thrown if a table cannot be read or is too large. The message explains why and suggests a fix. */
export class TableFault extends Error {}

export const clip = (text: string, maxChars: number = bounds.valueMaxChars) =>
  text.length > maxChars ? `${text.slice(0, maxChars - 1)}…` : text
