import { hash } from 'node:crypto'

/** Longer texts stand in keys and indexes as their hash. */
const keyMaxLength = 500

/**
 * A text as it stands in a key or a query. Whatever comes from outside passes here: what is no text (an object could be an
 * operator) is refused, and what BSON would change (halves of surrogate pairs) or carry badly becomes a hash, so that two
 * different texts never meet in one key.
 * @throws TypeError for anything but a text
 */
export function keyText(value: string): string {
  if (typeof value !== 'string') throw new TypeError('A key of the store is a text')
  const plain =
    value.length <= keyMaxLength && value.isWellFormed() && !value.startsWith('#') && !value.includes('\0')
  return plain ? value : `#${hashOf(value)}`
}

/** One key of several texts; no two lists have the same. */
export function hashOf(...values: string[]): string {
  if (values.some((value) => typeof value !== 'string')) throw new TypeError('A key of the store is a text')
  return hash('sha256', JSON.stringify(values), 'base64url')
}

/** Newest last as text: the time, then the id, for two of the same time. */
export function positionOf(time: string, id: string): string {
  return `${keyText(time)} ${keyText(id)}`
}
