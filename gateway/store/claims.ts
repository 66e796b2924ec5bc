import { atMost, type DocumentDatabase, declareCollection } from '@parley/kit/database/documents'
import { keyText } from '@parley/kit/database/keys'

/** Named claims, each held by one holder for a limited time. */
export interface Claims {
  /** Takes or renews the claim. Returns false if another holder has it. Clocks must agree within a few seconds. */
  hold(name: string, holder: string, forMs: number): Promise<boolean>
  /** Returns the holders with this prefix of claims that have not expired. Only for collections with few claims. */
  holders(prefix: string): Promise<string[]>
}

/**
 * Returns a collection of claims. `gateway_claims` holds work that only one of several gateways does, and
 * `gateway_signatures` holds the signed requests that agents have accepted.
 */
export const claimCollection = (name: 'gateway_claims' | 'gateway_signatures') =>
  declareCollection({
    name,
    fields: { name: 'key', holder: 'key', until: 'integer' },
    key: ['name'],
    indexes: { expired: { order: 'until' } },
    expires: { field: 'until', index: 'expired' },
    mongodb: { id: ({ name: claimed }) => keyText(String(claimed)) },
  })

export function claimsIn(
  database: DocumentDatabase,
  collection: 'gateway_claims' | 'gateway_signatures',
): Claims {
  const claims = database.collection(claimCollection(collection))
  return {
    hold: async (name, holder, forMs) => {
      const now = Date.now()
      const over = { any: [{ holder }, { until: atMost(now) }] }
      const row = { name, holder, until: now + forMs }
      return (await claims.insert(row, { over, removeExpiredAt: now })) === 'written'
    },
    holders: async (prefix) => {
      const now = Date.now()
      const found = await claims.find('expired', {})
      return found.flatMap(({ holder = '', until }) =>
        until > now && holder.startsWith(prefix) ? [holder] : [],
      )
    },
  }
}
