import { randomUUID } from 'node:crypto'

/**
 * Creates an ID of a stored record, a UUID version 7 (RFC 9562) made of the time and 74 random bits. Consecutive IDs are
 * adjacent in the indexes of the store, so that a commit changes few pages.
 */
export function newId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
