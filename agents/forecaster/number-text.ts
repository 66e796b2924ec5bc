/** Formats a number with four significant digits, because a forecast is not more precise. */
export function numberText(value: number): string {
  const size = Math.abs(value)
  const digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4
  return value.toLocaleString('en-US', { maximumFractionDigits: digits, minimumFractionDigits: 0 })
}
