/** A decimal amount in whole units without a sign, exponent or currency. */
export const amountPattern = /^\d{1,30}(\.\d{1,30})?$/

const decimals = 30

/** The amount in units of 10⁻³⁰; undefined if the text is not an amount. */
export function amountOf(text: string): bigint | undefined {
  if (!amountPattern.test(text)) return undefined
  const [whole = '', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(decimals, '0'))
}

/** `a ÷ b` to twelve decimals, for `a` ≤ `b` and `b` ≠ 0. */
export function shareOf(a: bigint, b: bigint): number {
  return Number((a * 1_000_000_000_000n) / b) / 1_000_000_000_000
}

/** A number without an exponent: `1e-7` becomes "0.0000001". */
export function decimalText(value: number): string {
  const [digits = '', exponent] = String(value).split('e')
  if (exponent === undefined) return digits
  const [whole = '', fraction = ''] = digits.split('.')
  const shift = Number(exponent)
  if (shift > 0) return whole + fraction.padEnd(shift, '0')
  return `0.${'0'.repeat(-shift - 1)}${whole}${fraction}`
}
