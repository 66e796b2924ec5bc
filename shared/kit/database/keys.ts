import { hash } from 'node:crypto'

/** Longer strings are hashed in keys and indexes. */
const keyMaxLength = 500

/**
 * Converts an external string for use in a key or a query. Rejects other values, because an object could be an
 * operator. Strings that BSON would change (lone surrogates, NUL) or that are too long are hashed, so that two
 * different strings never get the same key.
 * @throws TypeError if the value is not a string
 */
export function keyText(value: string): string {
  if (typeof value !== 'string') throw new TypeError('A key of the store is a text')
  const plain =
    value.length <= keyMaxLength && value.isWellFormed() && !value.startsWith('#') && !value.includes('\0')
  return plain ? value : `#${hashOf(value)}`
}

/** Returns one key for several strings; different lists have different keys. */
export function hashOf(...values: string[]): string {
  if (values.some((value) => typeof value !== 'string')) throw new TypeError('A key of the store is a text')
  return hash('sha256', JSON.stringify(values), 'base64url')
}

/** Returns a string that sorts by time, then by id. */
export function positionOf(time: string, id: string): string {
  return `${keyText(time)} ${keyText(id)}`
}
