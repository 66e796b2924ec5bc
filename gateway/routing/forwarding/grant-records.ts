import { type DocumentDatabase, declareCollection } from '@parley/kit/database/documents'
import { RecentMap } from '@parley/kit/did/recent-map'

/** Stores the encrypted grants of `ReferenceGrants` until they expire, so that each gateway finds those of the others. */
export interface GrantRecords {
  /** @param until milliseconds since 1970 */
  save(id: string, sealed: string, until: number): Promise<void>
  /** May return a grant that has expired. */
  find(id: string): Promise<string | undefined>
}

const ownMax = 10_000

/** The grants of the only gateway on a database. They are in memory, because they end a minute later anyway. */
export function ownGrants(): GrantRecords {
  const grants = new RecentMap<string, string>(ownMax)
  return {
    save: async (id, sealed) => grants.set(id, sealed),
    find: async (id) => grants.get(id),
  }
}

export const grantCollection = declareCollection({
  name: 'reference_grants',
  fields: { id: 'key', sealed: 'text', until: 'integer' },
  key: ['id'],
  indexes: { expired: { order: 'until' } },
  expires: { field: 'until', index: 'expired' },
})

/** The grants of several gateways on one database. */
export function sharedGrants(database: DocumentDatabase): GrantRecords {
  const grants = database.collection(grantCollection)
  return {
    save: async (id, sealed, until) =>
      void (await grants.insert({ id, sealed, until }, { removeExpiredAt: Date.now() })),
    find: async (id) => (await grants.get({ id }))?.sealed,
  }
}
