import { hash } from 'node:crypto'
import { uuidOfHash, uuidPattern } from './uuid.ts'

/** The ID that the stores use, and the client's own ID if it differs. */
export interface NamedId {
  id: string
  name?: string
}

/** Converts the IDs that one client chooses. */
export type Ids = (given: string) => NamedId

/**
 * A2A clients may use any string as the ID of a context, a message or a webhook, whereas stores use UUIDs that are unique
 * across clients. A UUID is kept in lower case. Any other string becomes a UUID version 8 of the SHA-256 of owner and
 * string, so that equal strings of two clients do not collide. The string is stored as the name of the
 * ID and returned in answers.
 */
export function idsOf(owner: string): Ids {
  return (given) => {
    if (uuidPattern.test(given)) {
      const id = given.toLowerCase()
      return id === given ? { id } : { id, name: given }
    }
    return { id: uuidOfHash(hash('sha256', JSON.stringify([owner, given]), 'buffer')), name: given }
  }
}
