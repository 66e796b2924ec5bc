import type { JsonValue } from '../protocol/task.ts'

/**
 * RFC 8785: the same value is always the same text. Keys are sorted by UTF-16 code units, numbers written as ECMAScript
 * does. A lone surrogate, which that document forbids, stays escaped. Nesting is bounded where JSON comes in.
 */
export function canonicalJson(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return scalar(value)
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] as JsonValue)}`)
  return `{${members.join(',')}}`
}

function scalar(value: string | number | boolean | null): string {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new Error('JSON has no such number')
  return JSON.stringify(value)
}
