import type { Matrix, Unit } from 'mathjs'
import type { JsonValue } from './json.ts'
import type { lockedDown } from './mathjs.ts'
import type { Calculated } from './outcome.ts'

/** Maximum length of an answer in characters. */
export const resultMaxChars = 20_000

type Language = Pick<ReturnType<typeof lockedDown>, 'format' | 'typeOf'>

/** Formats a value for people. */
export function shown(language: Language, value: unknown, digits: number): string {
  if (value === undefined || value === null) return 'nothing'
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'string') return value.slice(0, resultMaxChars)
  if (countOf(value) > resultMaxChars) throw tooLong()
  const text = language.format(value, { precision: digits, lowerExp: -7, upperExp: Math.max(digits, 15) })
  if (text.length > resultMaxChars) throw tooLong()
  return text
}

/** Converts a value to JSON. Infinite, complex and high-precision numbers become text. */
export function jsonOf(
  language: Language,
  value: unknown,
  digits: number,
): Pick<Calculated, 'result' | 'value' | 'unit'> {
  if (language.typeOf(value) === 'Unit') {
    const { value: number, unit } = (value as Unit).toJSON() as { value: unknown; unit: string }
    const plain = json(language, number, digits)
    return {
      result: shown(language, value, digits),
      ...(typeof plain === 'number' && unit && quantity(language, value as Unit, digits)),
    }
  }
  return { result: json(language, value, digits) }
}

/** Number and unit as formatted. The library may choose a prefix other than the requested one. */
function quantity(language: Language, unit: Unit, digits: number): Pick<Calculated, 'value' | 'unit'> {
  const parts = /^(-?[\d.]+(?:e[+-]?\d+)?)\s+(.+)$/.exec(shown(language, unit, digits))
  return parts?.[1] && parts[2] ? { value: Number(parts[1]), unit: parts[2] } : {}
}

function json(language: Language, value: unknown, digits: number): JsonValue {
  if (typeof value === 'boolean') return value
  if (typeof value === 'number') {
    return Number.isFinite(value) ? Number(value.toPrecision(Math.min(digits, 17))) : String(value)
  }
  if (Array.isArray(value)) return value.map((item) => json(language, item, digits))
  const type = language.typeOf(value)
  if (type === 'DenseMatrix' || type === 'SparseMatrix' || type === 'Range') {
    return json(language, (value as Matrix).toArray(), digits)
  }
  return shown(language, value, digits)
}

function countOf(value: unknown): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + countOf(item), 0)
  const size = (value as { size?: unknown }).size
  if (typeof size !== 'function') return 1
  return (size.call(value) as number[]).reduce((product, length) => product * length, 1)
}

function tooLong(): Error {
  return Object.assign(new Error('the result is too long to show'), { fault: 'size' })
}
