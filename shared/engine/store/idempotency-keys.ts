import {
  atMost,
  type DocumentDatabase,
  declareCollection,
  type Found,
  type Row,
} from '@parley/kit/database/documents'
import { untilDone } from '@parley/kit/database/retry'
import type { IdempotencyRecord } from './store.ts'

const fields = {
  owner: 'key',
  key: 'key',
  body_hash: 'text?',
  task_id: 'key',
  expires_at: 'integer',
  /** The whole record as JSON. */
  body: 'text?',
} as const

export const idempotencyKeyCollection = declareCollection({
  name: 'idempotency_keys',
  fields,
  key: ['owner', 'key'],
  indexes: {
    of_task: { equals: ['task_id'], sqlite: 'idempotency_keys_of_task' },
    expired: { order: 'expires_at', sqlite: 'idempotency_keys_expiry' },
  },
  sqlite: { without: ['body'] },
  mongodb: { without: ['owner', 'key', 'body_hash'] },
})

export const idempotencyKeyRow = (record: IdempotencyRecord): Row<typeof fields> => ({
  owner: record.owner,
  key: record.key,
  body_hash: record.bodyHash,
  task_id: record.taskId,
  expires_at: record.expiresAt,
  body: JSON.stringify(record),
})

export function idempotencyRecordOf(row: Found<typeof fields>): IdempotencyRecord {
  if (row.body !== undefined) return JSON.parse(row.body)
  const { owner = '', key = '', body_hash: bodyHash = '', task_id: taskId = '', expires_at: expiresAt } = row
  return { owner, key, bodyHash, taskId, expiresAt }
}

export interface IdempotencyKeys {
  claimIdempotencyKey: (record: IdempotencyRecord) => Promise<IdempotencyRecord | undefined>
  removeExpiredKeys: (limit: number) => Promise<number>
}

/** The insert decides which of two concurrent requests comes first. It replaces an expired key. */
export function idempotencyKeys(database: DocumentDatabase, now: () => number): IdempotencyKeys {
  const keys = database.collection(idempotencyKeyCollection)
  return {
    claimIdempotencyKey: async (record) => {
      const row = idempotencyKeyRow(record)
      const claimed = await untilDone(async () => {
        const expired = { expires_at: atMost(now()) }
        if ((await keys.insert(row, { over: expired })) === 'written') return { earlier: undefined }
        const found = await keys.get(row)
        return found === undefined || found.expires_at <= now()
          ? undefined
          : { earlier: idempotencyRecordOf(found) }
      })
      return claimed.earlier
    },
    removeExpiredKeys: (limit) => keys.removeMany('expired', {}, { atMost: now(), limit }),
  }
}
