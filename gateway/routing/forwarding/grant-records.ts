import { type DocumentDatabase, declareCollection } from '@parley/kit/database/documents'

/** Stores the encrypted grants of `ReferenceGrants` until they expire, so that each gateway finds those of the others. */
export interface GrantRecords {
  /** @param until milliseconds since 1970 */
  save(id: string, sealed: string, until: number): Promise<void>
  /** May return a grant that has expired. */
  find(id: string): Promise<string | undefined>
}

/** Limits of the grants in memory, in number and characters. The oldest ones are removed first. */
const [ownMax, ownMaxChars] = [10_000, 32 * 1024 * 1024]

/** The grants of the only gateway on a database. They are in memory, because they end a minute later anyway. */
export function ownGrants(): GrantRecords {
  // Grants are valid for the same time, so they are in the order of their expiry.
  const grants = new Map<string, { sealed: string; until: number }>()
  let chars = 0
  return {
    save: async (id, sealed, until) => {
      grants.set(id, { sealed, until })
      chars += sealed.length
      for (const [first, oldest] of grants) {
        if (oldest.until > Date.now() && grants.size <= ownMax && chars <= ownMaxChars) return
        grants.delete(first)
        chars -= oldest.sealed.length
      }
    },
    find: async (id) => grants.get(id)?.sealed,
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
