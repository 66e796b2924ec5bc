import { hashOf, keyText } from '@parley/kit/database/keys'
import { isDuplicate } from '@parley/kit/database/mongodb/database'
import type { Index } from '@parley/kit/database/mongodb/schema'
import { untilDone } from '@parley/kit/database/retry'
import { type GatewayMongodb, gatewayScope } from '../store/mongodb/database.ts'
import type { OAuthEntry, OAuthStore } from './oauth-store.ts'

export const oauthIndexes: Record<string, Index[]> = {
  oauth_entries: [
    { name: 'oauth_of_client', key: { agent_id: 1, client_id: 1 }, having: 'client_id' },
    { name: 'oauth_of_grant', key: { agent_id: 1, grant_id: 1 }, having: 'grant_id' },
    { name: 'oauth_of_uid', key: { agent_id: 1, model: 1, uid: 1 }, having: 'uid' },
    { name: 'oauth_of_user_code', key: { agent_id: 1, model: 1, user_code: 1 }, having: 'user_code' },
    { name: 'oauth_expired', key: { agent_id: 1, expires_at: 1 }, having: 'expires_at' },
  ],
}

interface OAuthDocument {
  _id: string
  agent_id: string
  model: string
  /** JSON: what came from outside is no field of ours. */
  payload: string
  client_id?: string
  grant_id?: string
  uid?: string
  user_code?: string
  /** Seconds since 1970. */
  consumed_at?: number
  expires_at?: number
}

type Payload = Record<string, unknown>
const scope = { agent_id: gatewayScope }
const optional = ['client_id', 'grant_id', 'uid', 'user_code', 'expires_at'] as const

/** The OAuth server's state in the database that all gateways share. */
export function mongodbOAuthStore(database: GatewayMongodb): OAuthStore {
  const all = database.collection<OAuthDocument>('oauth_entries')
  const find = async (filter: Partial<OAuthDocument>) => payloadOf(await all.findOne({ ...filter, ...scope }))
  return database.guard<OAuthStore>(
    {
      upsert: async (entry) => {
        await untilDone(async () => {
          const { _id, agent_id, ...fields } = oauthDocument(entry)
          const absent = optional.filter((name) => fields[name] === undefined)
          const $unset = Object.fromEntries(absent.map((name) => [name, '' as const]))
          const change = absent.length === 0 ? { $set: fields } : { $set: fields, $unset }
          try {
            await all.updateOne({ _id, agent_id }, change, { upsert: true })
            return true
          } catch (error) {
            // Two wrote it for the first time at once: the second one writes over it.
            if (isDuplicate(error)) return undefined
            throw error
          }
        })
      },
      insert: async (entry) => {
        try {
          await all.insertOne(oauthDocument(entry))
          return true
        } catch (error) {
          if (isDuplicate(error)) return false
          throw error
        }
      },
      exchange: async (model, id, was, payload) => {
        const unchanged = { _id: idOf(model, id), ...scope, payload: JSON.stringify(was) }
        const change = { $set: { payload: JSON.stringify(payload) } }
        return (await all.updateOne(unchanged, change)).matchedCount === 1
      },
      find: (model, id) => find({ _id: idOf(model, id) }),
      findByUid: (model, uid) => find({ model: keyText(model), uid: keyText(uid) }),
      findByUserCode: (model, code) => find({ model: keyText(model), user_code: keyText(code) }),
      consume: async (model, id, at) => {
        const unused = { _id: idOf(model, id), ...scope, consumed_at: { $exists: false } }
        return (await all.updateOne(unused, { $set: { consumed_at: at } })).modifiedCount === 1
      },
      destroy: async (model, id) => void (await all.deleteOne({ _id: idOf(model, id), ...scope })),
      revokeByGrantId: async (id) => void (await all.deleteMany({ ...scope, grant_id: keyText(id) })),
      revokeByClientId: async (id) => void (await all.deleteMany({ ...scope, client_id: keyText(id) })),
      sweepExpired: async (before, limit) => {
        const expired = { ...scope, expires_at: { $lt: before } }
        const found = await all
          .find(expired)
          .sort({ expires_at: 1 })
          .limit(limit)
          .project<{ _id: string }>({ _id: 1 })
          .toArray()
        if (found.length === 0) return 0
        return (await all.deleteMany({ _id: { $in: found.map(({ _id }) => _id) }, ...expired })).deletedCount
      },
    },
    new Set(['revokeByClientId', 'revokeByGrantId', 'sweepExpired']),
  )
}

const idOf = (model: string, id: string) => `${gatewayScope}/${hashOf(model, id)}`

export function oauthDocument(entry: OAuthEntry): OAuthDocument {
  const { model, id, payload, clientId, grantId, uid, userCode, expiresAt } = entry
  return {
    _id: idOf(model, id),
    ...scope,
    model: keyText(model),
    payload: JSON.stringify(payload),
    ...(clientId !== undefined && { client_id: keyText(clientId) }),
    ...(grantId !== undefined && { grant_id: keyText(grantId) }),
    ...(uid !== undefined && { uid: keyText(uid) }),
    ...(userCode !== undefined && { user_code: keyText(userCode) }),
    ...(expiresAt !== undefined && { expires_at: expiresAt }),
  }
}

function payloadOf(found: OAuthDocument | null): Payload | undefined {
  if (found === null) return undefined
  const payload = JSON.parse(found.payload) as Payload
  return found.consumed_at === undefined ? payload : { ...payload, consumed: found.consumed_at }
}
