import { atMost, type DocumentDatabase, declareCollection } from '@parley/kit/database/documents'
import { signatureHash } from '@parley/kit/database/signature-hash'
import type { Store } from './store.ts'

/** Every adapter stores the same hash, so that signatures survive a migration. */
export const signatureCollection = declareCollection({
  name: 'signatures',
  fields: { hash: 'bytes', until: 'integer' },
  key: ['hash'],
  indexes: { expired: { order: 'until', sqlite: 'seen_signatures_until' } },
  expires: { field: 'until', index: 'expired' },
  sqlite: { table: 'seen_signatures' },
  mongodb: {
    id: ({ hash }) => (hash instanceof Uint8Array ? Buffer.from(hash).toString('base64url') : ''),
  },
})

export function signatures(database: DocumentDatabase, now: () => number): Pick<Store, 'takeSignature'> {
  const taken = database.collection(signatureCollection)
  return {
    takeSignature: async (did, signature, until) => {
      const row = { hash: signatureHash(did, signature), until }
      const at = now()
      return (await taken.insert(row, { over: { until: atMost(at) }, removeExpiredAt: at })) === 'written'
    },
  }
}
