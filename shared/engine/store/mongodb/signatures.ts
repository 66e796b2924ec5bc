import { insertUnlessThere } from '@parley/kit/database/mongodb/database'
import { signatureHash } from '@parley/kit/database/signature-hash'
import type { Inside } from './record.ts'

export interface SignatureDocument {
  _id: string
  agent_id: string
  /** Milliseconds since 1970. */
  until: number
}

/** Expired ones are removed by each process, at most so often and so many at once. */
const [removeEveryMs, removedAtOnce] = [10_000, 10_000]

/** The insert decides which of two is the first. */
export function signatureTaker({ agentId, beside, now }: Inside) {
  const all = beside<SignatureDocument>('signatures')
  let removedAt = Number.NEGATIVE_INFINITY
  const removeExpired = async () => {
    if (performance.now() - removedAt < removeEveryMs) return
    removedAt = performance.now()
    const expired = { agent_id: agentId, until: { $lte: now() } }
    const found = await all.find(expired).limit(removedAtOnce).project<{ _id: string }>({ _id: 1 }).toArray()
    if (found.length > 0) await all.deleteMany({ _id: { $in: found.map(({ _id }) => _id) }, ...expired })
  }
  return async (did: string, signature: Uint8Array, until: number): Promise<boolean> => {
    await removeExpired()
    const _id = signatureKey(agentId, signatureHash(did, signature))
    if (await insertUnlessThere(all, { _id, agent_id: agentId, until })) return true
    const expired = { _id, agent_id: agentId, until: { $lte: now() } }
    return (await all.updateOne(expired, { $set: { until } })).modifiedCount === 1
  }
}

/** The same hash as in the embedded store: what one has seen the other can know. */
export function signatureKey(agentId: string, hash: Uint8Array): string {
  return `${agentId}/${Buffer.from(hash).toString('base64url')}`
}
