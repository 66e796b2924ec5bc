import { hashOf } from '@parley/kit/database/keys'
import { isDuplicate } from '@parley/kit/database/mongodb/database'
import { Binary } from 'mongodb'
import { type GatewayMongodb, gatewayScope } from '../../../store/mongodb/database.ts'

export interface SentenceVectorDocument {
  _id: string
  agent_id: string
  /** When the vector was last used, in milliseconds since 1970. */
  at: number
  vector: Binary
}

const scope = { agent_id: gatewayScope }

/** The sentence vectors of all gateways. */
export function mongodbSentenceVectors(database: GatewayMongodb) {
  const all = database.collection<SentenceVectorDocument>('sentence_vectors')
  return {
    sentenceVectors: async (keys: readonly string[]): Promise<Map<string, Uint8Array>> => {
      const keyOf = new Map(keys.map((key) => [idOf(key), key]))
      if (keyOf.size === 0) return new Map()
      const found = await all.find({ ...scope, _id: { $in: [...keyOf.keys()] } }).toArray()
      return new Map(found.map(({ _id, vector }) => [keyOf.get(_id) ?? '', bytesIn(vector)]))
    },
    saveSentenceVectors: async (vectors: ReadonlyMap<string, Uint8Array>, at: number): Promise<void> => {
      if (vectors.size === 0) return
      const writes = [...vectors].map(([key, vector]) => {
        const replacement = sentenceVectorDocument({ key, at, vector })
        return { replaceOne: { filter: { _id: replacement._id, ...scope }, replacement, upsert: true } }
      })
      try {
        await all.bulkWrite(writes, { ordered: false })
      } catch (error) {
        // Another gateway has stored the same vector.
        if (!isDuplicate(error)) throw error
      }
    },
    markSentenceVectors: async (
      keys: readonly string[],
      { at, before }: { at: number; before: number },
    ): Promise<void> => {
      if (keys.length === 0) return
      const used = { ...scope, _id: { $in: keys.map(idOf) }, at: { $lt: before } }
      await all.updateMany(used, { $set: { at } })
    },
  }
}

/** Empty if the document is damaged. */
const bytesIn = (vector: unknown): Uint8Array =>
  vector instanceof Binary ? vector.buffer.subarray(0, vector.position) : new Uint8Array()

const idOf = (key: string) => `${gatewayScope}/${hashOf(key)}`

export function sentenceVectorDocument({
  key,
  at,
  vector,
}: {
  key: string
  at: number
  vector: Uint8Array
}): SentenceVectorDocument {
  return { _id: idOf(key), ...scope, at, vector: new Binary(vector) }
}
