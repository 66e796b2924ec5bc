import { keyText } from '@parley/kit/database/keys'
import { isDuplicate } from '@parley/kit/database/mongodb/database'
import type { Index } from '@parley/kit/database/mongodb/schema'
import type { Claims } from './claims.ts'
import { type GatewayMongodb, gatewayScope } from './mongodb/database.ts'

export interface ClaimDocument {
  _id: string
  agent_id: string
  holder: string
  /** Milliseconds since 1970. */
  until: number
}

/** `gateway_claims`: what one of several gateways does; `gateway_signatures`: signed requests that an agent has taken. */
type ClaimsName = 'gateway_claims' | 'gateway_signatures'

const expired: Index[] = [{ name: 'claims_expired', key: { agent_id: 1, until: 1 } }]
export const claimsIndexes: Record<ClaimsName, Index[]> = {
  gateway_claims: expired,
  gateway_signatures: expired,
}

/** Expired ones are removed by each process, at most so often and so many at once. */
const [removeEveryMs, removedAtOnce] = [10_000, 10_000]

export function mongodbClaims(database: GatewayMongodb, collection: ClaimsName): Claims {
  const all = database.collection<ClaimDocument>(collection)
  let removedAt = Number.NEGATIVE_INFINITY
  const removeExpired = async () => {
    if (performance.now() - removedAt < removeEveryMs) return
    removedAt = performance.now()
    const over = { agent_id: gatewayScope, until: { $lte: Date.now() } }
    const found = await all.find(over).limit(removedAtOnce).project<{ _id: string }>({ _id: 1 }).toArray()
    if (found.length > 0) await all.deleteMany({ _id: { $in: found.map(({ _id }) => _id) }, ...over })
  }
  return database.guard<Claims>({
    hold: async (name, holder, forMs) => {
      await removeExpired()
      const now = Date.now()
      const free = { $or: [{ holder: keyText(holder) }, { until: { $lte: now } }] }
      const mine = { $set: { holder: keyText(holder), until: now + forMs } }
      try {
        const key = { _id: claimKey(name), agent_id: gatewayScope }
        const { matchedCount, upsertedCount } = await all.updateOne({ ...key, ...free }, mine, {
          upsert: true,
        })
        return matchedCount + upsertedCount === 1
      } catch (error) {
        if (isDuplicate(error)) return false
        throw error
      }
    },
  })
}

export const claimKey = (name: string) => `${gatewayScope}/${keyText(name)}`
