import { cardHash, type Voucher } from '@parley/kit/did/vouch'
import type { AgentEntry } from '../registry/entry.ts'
import { agentUrl, cardOut } from './entry-out.ts'

/** The `proof` of an entry; null where the gateway has no identity, or the card no form that could be hashed. */
export type ProofOf = (entry: AgentEntry) => Promise<string | null>

interface Made {
  did: string | undefined
  url: string
  verified: boolean
  keys: readonly string[] | undefined
  proof: Promise<string | null>
}

/**
 * Proofs are made when an entry has changed, not with each request. A registration brings a new card object and a
 * heartbeat keeps it, so the card stands for the entry, and a proof goes when its card does.
 */
export function entryProofs(voucher: Voucher | undefined, gatewayUrl: string): ProofOf {
  const made = new WeakMap<object, Made>()
  return async (entry) => {
    if (voucher === undefined) return null
    const { did, url, verified, keys, card } = entry
    const before = made.get(card)
    const same =
      before?.did === did && before?.url === url && before?.verified === verified && before.keys === keys
    if (before !== undefined && same) return before.proof
    const proof = signed(voucher, entry, gatewayUrl).catch(() => null)
    made.set(card, { did, url, verified, keys, proof })
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
