import {
  absent,
  type DocumentDatabase,
  declareCollection,
  type Found,
  type Row,
} from '@parley/kit/database/documents'

/** A record of the OAuth server: a client, token, code, grant, session or interaction. */
export interface OAuthEntry {
  /** The kind of record, for example `Client` or `AccessToken`. */
  model: string
  id: string
  payload: Record<string, unknown>
  /** The client to which the record belongs. Not set if the record is itself a client. */
  clientId?: string
  /** The grant to which the record belongs. */
  grantId?: string
  /** The secondary key of a session. */
  uid?: string
  userCode?: string
  /** Seconds since 1970, or undefined if the record never expires. */
  expiresAt?: number
}

/**
 * The persistent state of the OAuth server. A change is durable when its promise resolves. Expired records may still be
 * returned, so callers must check `exp`. A missing record is returned as `undefined`.
 */
export interface OAuthStore {
  /** Inserts or replaces the record. A consumed record stays consumed. */
  upsert(entry: OAuthEntry): Promise<void>
  /** Inserts the record. Returns false and changes nothing if the id exists. */
  insert(entry: OAuthEntry): Promise<boolean>
  /** Replaces the payload if it equals `was`, as returned by `find`. Otherwise returns false and changes nothing. */
  exchange(
    model: string,
    id: string,
    was: Record<string, unknown>,
    payload: Record<string, unknown>,
  ): Promise<boolean>
  /** Returns the payload, with `consumed` (seconds since 1970) if the record was consumed. */
  find(model: string, id: string): Promise<Record<string, unknown> | undefined>
  findByUid(model: string, uid: string): Promise<Record<string, unknown> | undefined>
  findByUserCode(model: string, userCode: string): Promise<Record<string, unknown> | undefined>
  /** Marks the record as consumed. Returns false if it was already consumed or does not exist. */
  consume(model: string, id: string, at: number): Promise<boolean>
  destroy(model: string, id: string): Promise<void>
  /** Removes all tokens and codes that belong to the grant. */
  revokeByGrantId(grantId: string): Promise<void>
  /** Removes all of the client's tokens, codes, grants and management tokens, but not the client itself. */
  revokeByClientId(clientId: string): Promise<void>
  /** Removes at most `limit` records that expired before `before` (seconds since 1970) and returns their number. */
  sweepExpired(before: number, limit: number): Promise<number>
}

const fields = {
  model: 'key',
  id: 'key',
  /** The payload as JSON. */
  payload: 'text',
  client_id: 'key?',
  grant_id: 'key?',
  uid: 'key?',
  user_code: 'key?',
  /** Seconds since 1970. */
  consumed_at: 'integer?',
  expires_at: 'integer?',
} as const

export const oauthCollection = declareCollection({
  name: 'oauth_entries',
  fields,
  key: ['model', 'id'],
  // A consumed record stays consumed.
  kept: ['consumed_at'],
  indexes: {
    of_client: { equals: ['client_id'] },
    of_grant: { equals: ['grant_id'] },
    of_uid: { equals: ['model', 'uid'] },
    of_user_code: { equals: ['model', 'user_code'] },
    expired: { order: 'expires_at' },
  },
  mongodb: { without: ['id'] },
})

function rowOf({
  model,
  id,
  payload,
  clientId,
  grantId,
  uid,
  userCode,
  expiresAt,
}: OAuthEntry): Row<typeof fields> {
  return {
    model,
    id,
    payload: JSON.stringify(payload),
    client_id: clientId,
    grant_id: grantId,
    uid,
    user_code: userCode,
    expires_at: expiresAt,
  }
}

function payloadOf(row: Found<typeof fields> | undefined): Record<string, unknown> | undefined {
  if (row === undefined) return undefined
  const payload: Record<string, unknown> = JSON.parse(row.payload)
  return row.consumed_at === undefined ? payload : { ...payload, consumed: row.consumed_at }
}

/** Methods that process many records and therefore have no time limit. */
export const unboundedOAuthMethods: ReadonlySet<string> = new Set([
  'revokeByClientId',
  'revokeByGrantId',
  'sweepExpired',
])

export function oauthStore(database: DocumentDatabase): OAuthStore {
  const entries = database.collection(oauthCollection)
  const first = async (found: Promise<Found<typeof fields>[]>) => payloadOf((await found)[0])
  return {
    upsert: async (entry) => void (await entries.put(rowOf(entry))),
    insert: async (entry) => (await entries.insert(rowOf(entry))) === 'written',
    exchange: async (model, id, was, payload) => {
      const unchanged = { payload: JSON.stringify(was) }
      const written = await entries.update({ model, id }, { payload: JSON.stringify(payload) }, unchanged)
      return written === 'written'
    },
    find: async (model, id) => payloadOf(await entries.get({ model, id })),
    findByUid: (model, uid) => first(entries.find('of_uid', { model, uid })),
    findByUserCode: (model, userCode) => first(entries.find('of_user_code', { model, user_code: userCode })),
    consume: async (model, id, at) =>
      (await entries.update({ model, id }, { consumed_at: at }, { consumed_at: absent })) === 'written',
    destroy: async (model, id) => void (await entries.remove({ model, id })),
    revokeByGrantId: async (grantId) => void (await entries.removeMany('of_grant', { grant_id: grantId })),
    revokeByClientId: async (clientId) =>
      void (await entries.removeMany('of_client', { client_id: clientId })),
    sweepExpired: (before, limit) => entries.removeMany('expired', {}, { before, limit }),
  }
}
