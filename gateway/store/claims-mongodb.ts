import { isDuplicate } from '../../shared/store/mongodb-database.ts'
import { keyText } from '../../shared/store/mongodb-keys.ts'
import { type GatewayMongodb, gatewayScope } from './gateway-mongodb.ts'

interface ClaimDocument {
  _id: string
  agent_id: string
  holder: string
  /** Milliseconds since 1970. */
  until: number
}

/** Who of several gateways does what one of them shall do. */
export interface Claims {
  /** Takes or renews the claim; false while another one holds it. Clocks of gateways agree within a few seconds. */
  hold(name: string, holder: string, forMs: number): Promise<boolean>
}

export function mongodbClaims(database: GatewayMongodb): Claims {
  const all = database.collection<ClaimDocument>('gateway_claims')
  const idOf = (name: string) => `${gatewayScope}/${keyText(name)}`
  return database.guard<Claims>({
    hold: async (name, holder, forMs) => {
      const now = Date.now()
      const free = { $or: [{ holder: keyText(holder) }, { until: { $lt: now } }] }
      const mine = { $set: { holder: keyText(holder), until: now + forMs } }
      try {
        const key = { _id: idOf(name), agent_id: gatewayScope }
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
