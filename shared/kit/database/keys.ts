import { hash } from 'node:crypto'

/** Longer texts are stored in keys and indexes as a hash. */
const keyMaxLength = 500

/**
 * Converts a text from outside for a key or a query. Rejects values that are not texts, because an object could be an
 * operator. Texts that BSON would change (lone surrogates, NUL) or that are too long become a hash, so that two different
 * texts never get the same key.
 * @throws TypeError for anything but a text
 */
export function keyText(value: string): string {
  if (typeof value !== 'string') throw new TypeError('A key of the store is a text')
  const plain =
    value.length <= keyMaxLength && value.isWellFormed() && !value.startsWith('#') && !value.includes('\0')
  return plain ? value : `#${hashOf(value)}`
}

/** One key for several texts; different lists have different keys. */
export function hashOf(...values: string[]): string {
  if (values.some((value) => typeof value !== 'string')) throw new TypeError('A key of the store is a text')
  return hash('sha256', JSON.stringify(values), 'base64url')
}

/** Sorts as text by time, then by id. */
export function positionOf(time: string, id: string): string {
  return `${keyText(time)} ${keyText(id)}`
}
