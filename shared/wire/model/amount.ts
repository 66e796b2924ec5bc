/** Money is a decimal text in whole units (`"0.01"`) or a bigint in atomic units (`10000n`); never a float. */

/** The maximum number of digits before the point. The largest number in a token contract has 78 digits. */
const wholeDigitsMax = 60
export const decimalsMax = 36

const decimal = new RegExp(String.raw`^(0|[1-9]\d{0,${wholeDigitsMax - 1}})(?:\.(\d{1,${decimalsMax}}))?$`)

/** True for `"12"` and `"0.01"`: no sign, exponent or leading zeros, and at least one digit on each side of a point. */
export function isDecimal(text: string): boolean {
  return decimal.test(text)
}

/**
 * Converts whole units to atomic units: `("0.01", 6)` becomes `10000n`.
 * @throws RangeError when the amount is not a decimal number, or has more than `decimals` digits after the point
 */
export function toAtomic(amount: string, decimals: number): bigint {
  const match = decimal.exec(amount)
  if (match === null) throw new RangeError('must be a decimal number like "0.01"')
  const [, whole = '0', fraction = ''] = match
  if (fraction.length > decimals)
    throw new RangeError(`has ${fraction.length} digits after the point, and the asset has ${decimals}`)
  return BigInt(whole + fraction.padEnd(decimals, '0'))
}

/** Converts atomic units to whole units without trailing zeros: `(10000n, 6)` becomes `"0.01"`. */
export function toWhole(atomic: bigint, decimals: number): string {
  const digits = atomic.toString().padStart(decimals + 1, '0')
  const point = digits.length - decimals
  const fraction = digits.slice(point).replace(/0+$/, '')
  return fraction === '' ? digits.slice(0, point) : `${digits.slice(0, point)}.${fraction}`
}
