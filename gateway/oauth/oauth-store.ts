import {
  absent,
  type DocumentDatabase,
  declareCollection,
  type Found,
  type Row,
} from '@parley/kit/database/documents'
import { hashOf } from '@parley/kit/database/keys'
import { untilDone } from '@parley/kit/database/retry'
import type { RecordCipher } from '../keys/key-ring.ts'

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
  /** Returns the payloads of all records of a model, or of those that belong to a client. */
  list(model: string, clientId?: string): Promise<Record<string, unknown>[]>
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
  /** The encrypted payload. Earlier versions stored it as JSON. */
  payload: 'text',
  /** The data key that encrypts the payload. Not set for plaintext. */
  data_key: 'key?',
  client_id: 'key?',
  grant_id: 'key?',
  /** A keyed hash, because a copy of the database must not reveal it; in plaintext records, the value. */
  uid: 'key?',
  /** A keyed hash, as for `uid`. */
  user_code: 'key?',
  /** Seconds since 1970. */
  consumed_at: 'integer?',
  expires_at: 'integer?',
  /** Hash of model and id, returned by databases that do not store the id. */
  ref: 'key?',
} as const
export type FoundEntry = Found<typeof fields>

export const oauthCollection = declareCollection({
  name: 'oauth_entries',
  fields,
  key: ['model', 'id'],
  // A consumed record stays consumed.
  kept: ['consumed_at'],
  indexes: {
    of_model: { equals: ['model'] },
    of_client: { equals: ['client_id'] },
    of_grant: { equals: ['grant_id'] },
    of_uid: { equals: ['model', 'uid'] },
    of_user_code: { equals: ['model', 'user_code'] },
    expired: { order: 'expires_at' },
    of_data_key: { equals: ['data_key'] },
    all: {},
  },
  sqlite: { without: ['ref'] },
  mongodb: {
    without: ['id', 'ref'],
    id: ({ model, id, ref }) => (typeof ref === 'string' ? ref : hashOf(String(model), String(id))),
    idField: 'ref',
  },
})

/** Returns the record to which a payload is bound: in another record, the encrypted payload cannot be decrypted. */
export const contextOf = (ref: string) => `parley oauth record ${ref}`

/** Returns the keyed hash under which a record is found by its uid or user code. */
function lookupOf(
  cipher: RecordCipher,
  field: 'uid' | 'user_code',
  model: string,
  value: string,
): Promise<string> {
  return cipher.hash(`${field} of ${model}`, value)
}

/** Returns the hashes that replace the uid and the user code of a plaintext record. */
export async function hashedLookups(
  { data_key, uid, user_code }: FoundEntry,
  model: string,
  cipher: RecordCipher,
): Promise<{ uid?: string; user_code?: string }> {
  if (data_key !== undefined) return {}
  return {
    ...(uid !== undefined && { uid: await lookupOf(cipher, 'uid', model, uid) }),
    ...(user_code !== undefined && { user_code: await lookupOf(cipher, 'user_code', model, user_code) }),
  }
}

async function rowOf(entry: OAuthEntry, cipher: RecordCipher): Promise<Row<typeof fields>> {
  const { model, id, payload, clientId, grantId, uid, userCode, expiresAt } = entry
  const { sealed, dataKey } = await cipher.seal(JSON.stringify(payload), contextOf(hashOf(model, id)))
  return {
    model,
    id,
    payload: sealed,
    data_key: dataKey,
    client_id: clientId,
    grant_id: grantId,
    uid: uid === undefined ? undefined : await lookupOf(cipher, 'uid', model, uid),
    user_code: userCode === undefined ? undefined : await lookupOf(cipher, 'user_code', model, userCode),
    expires_at: expiresAt,
  }
}

/** @throws UnreadableRecord */
async function payloadOf(
  row: FoundEntry | undefined,
  { model, ref }: { model: string; ref: string },
  cipher: RecordCipher,
): Promise<Record<string, unknown> | undefined> {
  if (row === undefined) return undefined
  const text = await cipher.open(row.payload, contextOf(ref), `OAuth ${model}`)
  const payload: Record<string, unknown> = JSON.parse(text)
  return row.consumed_at === undefined ? payload : { ...payload, consumed: row.consumed_at }
}

/** Methods that process many records and therefore have no time limit. */
export const unboundedOAuthMethods: ReadonlySet<string> = new Set([
  'list',
  'revokeByClientId',
  'revokeByGrantId',
  'sweepExpired',
])

export function oauthStore(database: DocumentDatabase, cipher: RecordCipher): OAuthStore {
  const entries = database.collection(oauthCollection)
  const open = (row: FoundEntry | undefined, model: string, id: string) =>
    payloadOf(row, { model, ref: row?.ref ?? hashOf(model, row?.id ?? id) }, cipher)
  const findBy = async (field: 'uid' | 'user_code', model: string, value: string) => {
    const hashed = await lookupOf(cipher, field, model, value)
    const found = async (of: string) =>
      field === 'uid'
        ? (await entries.find('of_uid', { model, uid: of }))[0]
        : (await entries.find('of_user_code', { model, user_code: of }))[0]
    const row = (await found(hashed)) ?? ((await cipher.acceptsPlaintext()) ? await found(value) : undefined)
    return open(row, model, '')
  }
  return {
    upsert: async (entry) => void (await entries.put(await rowOf(entry, cipher))),
    insert: async (entry) => (await entries.insert(await rowOf(entry, cipher))) === 'written',
    exchange: (model, id, was, payload) =>
      untilDone(async () => {
        const row = await entries.get({ model, id })
        const context = contextOf(hashOf(model, id))
        if (row === undefined) return false
        if ((await cipher.open(row.payload, context, `OAuth ${model}`)) !== JSON.stringify(was)) return false
        const { sealed, dataKey } = await cipher.seal(JSON.stringify(payload), context)
        const change = { payload: sealed, data_key: dataKey, ...(await hashedLookups(row, model, cipher)) }
        const written = await entries.update({ model, id }, change, { payload: row.payload })
        // After a refusal, the payload may be the same, encrypted again; any other change ends the next attempt.
        return written === 'written' ? true : undefined
      }),
    find: async (model, id) => open(await entries.get({ model, id }), model, id),
    findByUid: (model, uid) => findBy('uid', model, uid),
    findByUserCode: (model, userCode) => findBy('user_code', model, userCode),
    list: async (model, clientId) => {
      const rows =
        clientId === undefined
          ? await entries.find('of_model', { model })
          : await entries.find('of_client', { client_id: clientId }, { where: { model } })
      const payloads = await Promise.all(rows.map((row) => open(row, model, row.id ?? '')))
      return payloads.filter((payload) => payload !== undefined)
    },
    consume: async (model, id, at) =>
      (await entries.update({ model, id }, { consumed_at: at }, { consumed_at: absent })) === 'written',
    destroy: async (model, id) => void (await entries.remove({ model, id })),
    revokeByGrantId: async (grantId) => void (await entries.removeMany('of_grant', { grant_id: grantId })),
    revokeByClientId: async (clientId) =>
      void (await entries.removeMany('of_client', { client_id: clientId })),
    sweepExpired: (before, limit) => entries.removeMany('expired', {}, { before, limit }),
  }
}
