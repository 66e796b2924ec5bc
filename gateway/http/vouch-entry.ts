import { cardHash, type Voucher } from '../../shared/identity/vouch.ts'
import type { AgentEntry } from '../registry/entry.ts'
import { agentUrl, cardOut } from './entry-out.ts'

/** The `proof` of an entry; null where the gateway has no identity. */
export type Vouch = (entry: AgentEntry) => Promise<string | null>

interface Made {
  did: string | undefined
  url: string
  verified: boolean
  keys: readonly string[] | undefined
  proof: Promise<string>
}

/**
 * Proofs are made when an entry has changed, not with each request. A registration brings a new card object and a
 * heartbeat keeps it, so the card stands for the entry, and a proof goes when its card does.
 */
export function vouchFor(voucher: Voucher | undefined, gatewayUrl: string): Vouch {
  const made = new WeakMap<object, Made>()
  return async (entry) => {
    if (voucher === undefined) return null
    const { did, url, verified, keys, card } = entry
    const before = made.get(card)
    const same =
      before?.did === did && before?.url === url && before?.verified === verified && before.keys === keys
    if (before !== undefined && same) return before.proof
    const proof = voucher.sign({
      sub: did ?? null,
      keys: [...(keys ?? [])],
      url: agentUrl(entry.slug, gatewayUrl),
      card_hash: cardHash(cardOut(entry, gatewayUrl)),
      verified,
    })
    made.set(card, { did, url, verified, keys, proof })
    return proof
  }
}
