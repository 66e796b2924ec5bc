import { cardHash, type Voucher } from '@parley/kit/did/vouch'
import type { AgentEntry } from '../registry/entry.ts'
import { agentUrl, cardOut } from './entry-out.ts'

/** Returns the `proof` of an entry, or null if the gateway has no identity or the card cannot be hashed. */
export type ProofOf = (entry: AgentEntry) => Promise<string | null>

interface CachedProof {
  did: string | undefined
  url: string
  verified: boolean
  keys: readonly string[] | undefined
  proof: Promise<string | null>
}

/**
 * Caches one proof per card object, because a registration creates a new card object and a heartbeat does not. The
 * other signed fields are compared.
 */
export function entryProofs(voucher: Voucher | undefined, gatewayUrl: string): ProofOf {
  const cache = new WeakMap<object, CachedProof>()
  return async (entry) => {
    if (voucher === undefined) return null
    const { did, url, verified, keys, card } = entry
    const before = cache.get(card)
    const same =
      before?.did === did && before?.url === url && before?.verified === verified && before.keys === keys
    if (before !== undefined && same) return before.proof
    const proof = signed(voucher, entry, gatewayUrl).catch(() => null)
    cache.set(card, { did, url, verified, keys, proof })
    return proof
  }
}

async function signed(voucher: Voucher, entry: AgentEntry, gatewayUrl: string): Promise<string> {
  return voucher.sign({
    sub: entry.did ?? null,
    keys: [...(entry.keys ?? [])],
    url: agentUrl(entry.slug, gatewayUrl),
    card_hash: cardHash(cardOut(entry, gatewayUrl)),
    verified: entry.verified,
  })
}
