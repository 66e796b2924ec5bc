import {
  absent,
  type Conditions,
  type DocumentDatabase,
  type Documents,
} from '@parley/kit/database/documents'
import { hashOf } from '@parley/kit/database/keys'
import { type KeyRing, UnreadableRecord } from '../keys/key-ring.ts'
import { contextOf, type FoundEntry, hashedLookups, oauthCollection } from './oauth-store.ts'

type Fields = typeof oauthCollection.fields
type Entries = Documents<Fields, 'model' | 'id', 'all' | 'of_data_key'>

/** The number of OAuth records by the data key that encrypts them. */
export interface RecordCounts {
  byDataKey: Record<string, number>
  /** Records in plaintext or under a data key that is no longer known. */
  other: number
}

/** The result of a pass over the records. */
export interface EncryptedRecords {
  /** Plaintext records that were encrypted. */
  encrypted: number
  /** Records under an earlier data key that were encrypted again. */
  renewed: number
  /** Records that could not be decrypted and were left unchanged. */
  unreadable: number
}

const batch = 200

export async function countRecords(database: DocumentDatabase, ring: KeyRing): Promise<RecordCounts> {
  const entries = database.collection(oauthCollection)
  const counted = await Promise.all(
    ring.summary.keys.map(async ({ id }): Promise<[string, number]> => {
      return [id, await entries.count('of_data_key', { data_key: id })]
    }),
  )
  const known = counted.reduce((sum, [, count]) => sum + count, 0)
  return { byDataKey: Object.fromEntries(counted), other: (await entries.count('all', {})) - known }
}

/**
 * Encrypts all records with the current data key, in batches, while other processes read and write them. If it is
 * interrupted, the next call continues.
 */
export async function encryptRecords(
  database: DocumentDatabase,
  ring: KeyRing,
  onBatch: (done: EncryptedRecords) => void = () => {},
): Promise<EncryptedRecords> {
  const entries = database.collection(oauthCollection)
  const done: EncryptedRecords = { encrypted: 0, renewed: 0, unreadable: 0 }
  const pass = async (where: Conditions<Fields>, counter: 'encrypted' | 'renewed') => {
    // Unreadable records stay in the selection, so each batch also has space for them.
    for (let unreadable = 0; ; ) {
      const rows = await entries.find('all', {}, { where, limit: batch + unreadable })
      const results = await Promise.all(rows.map((row) => renew(entries, ring, row)))
      const failed = results.filter((result) => result === 'unreadable').length
      done[counter] += results.filter((result) => result === 'written').length
      done.unreadable += failed - unreadable
      unreadable = failed
      if (rows.length === failed) return
      onBatch(done)
    }
  }
  await pass({ data_key: absent }, 'encrypted')
  for (const { id, current } of ring.summary.keys) if (!current) await pass({ data_key: id }, 'renewed')
  return done
}

/** Replaces the stored payload unless it changes during the encryption. The next batch contains the record again in that case. */
async function renew(
  entries: Entries,
  ring: KeyRing,
  row: FoundEntry,
): Promise<'written' | 'refused' | 'unreadable'> {
  const { model = '', id = '', payload, ref = hashOf(model, id) } = row
  const context = contextOf(ref)
  let text: string
  try {
    text = await ring.open(payload, context, `OAuth ${model}`)
  } catch (error) {
    if (error instanceof UnreadableRecord) return 'unreadable'
    throw error
  }
  const { sealed, dataKey } = await ring.seal(text, context)
  const change = { payload: sealed, data_key: dataKey, ...(await hashedLookups(row, model, ring)) }
  const key = { model, id, ref }
  return (await entries.update(key, change, { payload })) === 'written' ? 'written' : 'refused'
}
