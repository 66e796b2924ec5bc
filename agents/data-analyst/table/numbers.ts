/** Number format of a column. */
export type NumberStyle = 'point' | 'comma'

/** Maximum absolute value. Larger numbers overflow when squared and are not plausible measurements. */
const numberMax = 1e100

const shape =
  /^[-+]?(?:\d{1,3}(?:[ .,'\u00a0\u202f]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?|[.,]\d+)(?:e[-+]?\d+)?$/i

/** Removes currency signs, percent signs and the parentheses of negative numbers. */
function bare(cell: string): string {
  const negative = /^\((.+)\)$/.exec(cell)
  const text = (negative?.[1] ?? cell)
    .replace(/^([-+]?)\s*(?:[$€£¥₹]|USD|EUR|GBP|CHF)\s*/i, '$1')
    .replace(/\s*(?:%|[$€£¥₹]|USD|EUR|GBP|CHF)$/i, '')
    .trim()
  return negative ? `-${text}` : text.replace(/^−/, '-')
}

export const looksNumeric = (cell: string) => shape.test(bare(cell))

/** Detects whether a column uses the format `1,234.5` or `1.234,5`. Assumes a decimal point by default. */
export function numberStyle(cells: string[]): NumberStyle {
  const votes = { point: 0, comma: 0, neither: 0 }
  for (const cell of cells) votes[vote(bare(cell))] += 1
  return votes.comma > votes.point ? 'comma' : 'point'
}

function vote(text: string): NumberStyle | 'neither' {
  const lastComma = text.lastIndexOf(',')
  const lastPoint = text.lastIndexOf('.')
  if (lastComma < 0 && lastPoint < 0) return 'neither'
  if (lastComma >= 0 && lastPoint >= 0) return lastComma > lastPoint ? 'comma' : 'point'
  const sign = lastComma >= 0 ? ',' : '.'
  const decimal = lastComma >= 0 ? 'comma' : 'point'
  // A repeated separator groups thousands. A separator that cannot group digits is the decimal separator. A single "1,234" is ambiguous.
  if (!isGroup(text, sign)) return decimal
  if (text.indexOf(sign) === text.lastIndexOf(sign)) return 'neither'
  return decimal === 'comma' ? 'point' : 'comma'
}

const isGroup = (text: string, sign: string) =>
  new RegExp(`^[-+]?[1-9]\\d{0,2}(?:\\${sign}\\d{3})+$`).test(text)

/** Parses a cell as a number in this format. Returns undefined if it is not a number. */
export function numberOf(cell: string, style: NumberStyle): number | undefined {
  const text = bare(cell)
  if (!shape.test(text)) return undefined
  const decimal = style === 'comma' ? ',' : '.'
  const parts = text.replace(/[ '\u00a0\u202f]/g, '').split(decimal)
  if (parts.length > 2) return undefined
  const whole = parts[0]?.replace(/[.,]/g, '')
  const number = Number(parts.length === 2 ? `${whole}.${parts[1]}` : whole)
  return Math.abs(number) <= numberMax ? number : undefined
}
