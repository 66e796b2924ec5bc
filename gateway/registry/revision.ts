import { hash } from 'node:crypto'
import type { AgentEntry } from './entry.ts'

/**
 * Hashes the identity and published data of an agent, and the address of an agent without a proven DID. An operator passes the
 * hash to admit exactly the revision that was reviewed.
 */
export function revisionOf(entry: AgentEntry): string {
  const { id, slug, did, keys, verified, url, skills, cardSignature } = entry
  // A foreign agent is known by its address, also if its card is signed.
  const where = verified && did !== undefined ? null : url
  // Servers may sign their card again for each request.
  const { signatures: _, ...card } = entry.card
  const signer = cardSignature?.verified === true ? [cardSignature.kid] : []
  return hash(
    'sha256',
    JSON.stringify([id, slug, did ?? null, keys, verified, where, card, skills, ...signer]),
    'base64url',
  )
}
