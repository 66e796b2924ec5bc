import { type DocumentDatabase, declareCollection } from '@parley/kit/database/documents'

export interface SealedGrant {
  id: string
  sealed: string
  /** Milliseconds since 1970. */
  until: number
  /** The grant was created on behalf of this client. */
  owner: string
}

/** Stores the encrypted grants of `ReferenceGrants` until they expire, so that each gateway finds those of the others. */
export interface GrantRecords {
  save(grant: SealedGrant): Promise<void>
  /** May return a grant that has expired. */
  find(id: string): Promise<string | undefined>
}

/** Limits of the grants in memory, in number and characters. */
const [ownMax, ownMaxChars] = [10_000, 32 * 1024 * 1024]

/** The grants of the only gateway on a database. They are in memory, because they end a minute later anyway. */
export function ownGrants(): GrantRecords {
  const grants = new OwnGrants()
  return { save: async (grant) => grants.add(grant), find: async (id) => grants.find(id) }
}

/** The ids of a client's grants, the oldest one first. */
interface Share {
  ids: Set<string>
  chars: number
}

/** Above the limits, the oldest grant of the client with the largest share is removed, so that no client displaces others. */
class OwnGrants {
  /** Grants are valid for the same time, so they are in the order of their expiry. */
  readonly #grants = new Map<string, SealedGrant>()
  readonly #shares = new Map<string, Share>()
  #chars = 0

  find(id: string): string | undefined {
    return this.#grants.get(id)?.sealed
  }

  add(grant: SealedGrant): void {
    this.#remove(grant.id)
    this.#grants.set(grant.id, grant)
    const share = this.#shares.get(grant.owner) ?? { ids: new Set(), chars: 0 }
    this.#shares.set(grant.owner, share)
    share.ids.add(grant.id)
    share.chars += grant.sealed.length
    this.#chars += grant.sealed.length
    const now = Date.now()
    for (const [id, { until }] of this.#grants) {
      if (until > now) break
      this.#remove(id)
    }
    while (this.#grants.size > ownMax || this.#chars > ownMaxChars) this.#remove(this.#oldestOfLargest())
  }

  #oldestOfLargest(): string {
    let largest: Share | undefined
    for (const share of this.#shares.values())
      if (largest === undefined || sizeOf(share) > sizeOf(largest)) largest = share
    return largest?.ids.values().next().value ?? ''
  }

  #remove(id: string): void {
    const grant = this.#grants.get(id)
    const share = grant && this.#shares.get(grant.owner)
    if (grant === undefined || share === undefined) return
    this.#grants.delete(id)
    this.#chars -= grant.sealed.length
    share.chars -= grant.sealed.length
    share.ids.delete(id)
    if (share.ids.size === 0) this.#shares.delete(grant.owner)
  }
}

const sizeOf = ({ ids, chars }: Share) => Math.max(ids.size / ownMax, chars / ownMaxChars)

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
    save: async ({ id, sealed, until }) =>
      void (await grants.insert({ id, sealed, until }, { removeExpiredAt: Date.now() })),
    find: async (id) => (await grants.get({ id }))?.sealed,
  }
}
