import { hash } from 'node:crypto'

/** The ID that the stores use, and the client's own ID if it differs. */
export interface NamedId {
  id: string
  name?: string
}

/** Converts the IDs that one client chooses. */
export type Ids = (given: string) => NamedId

const uuidPattern = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i

/**
 * A2A clients may use any string as the ID of a context, a message or a webhook, whereas stores use UUIDs that are unique
 * across clients. A UUID is kept in lower case. Any other string becomes a UUID version 8 (RFC 9562) of 122 bits of the
 * SHA-256 of owner and string, so that equal strings of two clients do not collide. The string is stored as the name of the
 * ID and returned in answers.
 */
export function idsOf(owner: string): Ids {
  return (given) => {
    if (uuidPattern.test(given)) {
      const id = given.toLowerCase()
      return id === given ? { id } : { id, name: given }
    }
    const hex = hash('sha256', JSON.stringify([owner, given]))
    const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16)
    const id = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(18, 20)}-${hex.slice(20, 32)}`
    return { id, name: given }
  }
}
