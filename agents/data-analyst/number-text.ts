/** Formats a number for people: grouped, with significant digits only. */
export function numberText(value: number, sign?: string): string {
  const text = plain(value)
  if (!sign) return text
  return sign === '%' ? `${text} %` : value < 0 ? `-${sign}${text.slice(1)}` : `${sign}${text}`
}

function plain(value: number): string {
  const size = Math.abs(value)
  if (size !== 0 && (size < 0.001 || size >= 1e15)) return value.toExponential(2).replace('e+', 'e')
  const digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4
  return value.toLocaleString('en-US', { maximumFractionDigits: Number.isInteger(value) ? 0 : digits })
}

/** Short format for axis labels. */
export function tickText(value: number, sign?: string): string {
  const size = Math.abs(value)
  const scaled: [number, string] | undefined =
    size >= 1e9 ? [1e9, 'B'] : size >= 1e6 ? [1e6, 'M'] : size >= 1e4 ? [1e3, 'k'] : undefined
  if (!scaled || size >= 1e15) return numberText(Number(value.toPrecision(6)), sign)
  const text = `${Number((value / scaled[0]).toPrecision(4))}${scaled[1]}`
  if (!sign) return text
  return sign === '%' ? `${text} %` : value < 0 ? `-${sign}${text.slice(1)}` : `${sign}${text}`
}
