import { randomUUID } from 'node:crypto'

/**
 * An id for a task or a context: a UUID of version 7 (RFC 9562), that is a time and 74 random bits. Ids made one after the
 * other stand beside each other in the store's indexes, so that a commit changes few pages of them.
 */
export function newId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
