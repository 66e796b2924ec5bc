import type { Collection } from 'mongodb'
import { hashOf } from '../keys.ts'
import { untilDone } from '../retry.ts'
import { insertUnlessThere } from './database.ts'
import type { StoredDocument } from './layout.ts'

/** Names the document that has a unique value. Its `_id` contains the value, so only one of two inserts succeeds. */
export interface ClaimDocument {
  _id: string
  agent_id: string
  /** The `_id` of the document. */
  row: string
  /** Time of the claim, in milliseconds since 1970. */
  at: number
}

export interface UniqueValuesOptions {
  claims: Collection<ClaimDocument>
  rows: Collection<StoredDocument>
  /** The prefix of the claims for each field with unique values. */
  prefixes: Record<string, string>
  scope: string
  now: () => number
}

/** Age after which a claim without a document belongs to a dead process rather than to a write in progress. */
const abandonedAfterMs = 60_000

/** Returns the claims of a document. */
export function claimsOf(scope: string, prefixes: Record<string, string>, row: Record<string, unknown>) {
  return Object.entries(prefixes).flatMap(([field, prefix]) => {
    const value = row[field]
    return typeof value === 'string' ? [{ field, value, _id: `${scope}/${prefix}/${hashOf(value)}` }] : []
  })
}

/**
 * Enforces unique values without a unique index. A claim is written before its document and removed after it. A claim
 * left behind by a crash is taken over after a minute; a slow writer that lost its claim this way detects the loss
 * before it relies on its document.
 */
export class UniqueValues {
  readonly #options: UniqueValuesOptions

  constructor(options: UniqueValuesOptions) {
    this.#options = options
  }

  /** Claims the values of the document that `before` did not contain. */
  async take(
    row: StoredDocument,
    before: Record<string, unknown> = {},
  ): Promise<{ fields: string[] } | { taken: string }> {
    const fields: string[] = []
    for (const { field, value, _id } of this.#claimsOf(row)) {
      if (before[field] === value) continue
      if (await this.#claim(row, { field, value, _id })) fields.push(field)
      else {
        await this.release(row, fields)
        return { taken: field }
      }
    }
    return { fields }
  }

  async release(row: StoredDocument, fields: readonly string[]): Promise<void> {
    const { claims, scope } = this.#options
    for (const { field, _id } of this.#claimsOf(row)) {
      if (fields.includes(field)) await claims.deleteOne({ _id, agent_id: scope, row: row._id })
    }
  }

  /** Releases the values that `before` contained and `after` does not. */
  releaseUnused(before: StoredDocument, after: Record<string, unknown> = {}): Promise<void> {
    const fields = Object.keys(this.#options.prefixes).filter((field) => before[field] !== after[field])
    return this.release(before, fields)
  }

  /** Whether another process has taken over one of the claims in the meantime. */
  async lost(row: StoredDocument, fields: readonly string[]): Promise<{ taken: string } | undefined> {
    const { claims, scope } = this.#options
    for (const { field, _id } of this.#claimsOf(row)) {
      if (!fields.includes(field)) continue
      const held = await claims.countDocuments({ _id, agent_id: scope, row: row._id }, { limit: 1 })
      if (held === 0) return { taken: field }
    }
    return undefined
  }

  #claim(
    row: StoredDocument,
    { field, value, _id }: { field: string; value: string; _id: string },
  ): Promise<boolean> {
    const { claims, rows, scope, now } = this.#options
    return untilDone(async () => {
      const ours = { row: row._id, at: now() }
      if (await insertUnlessThere(claims, { _id, agent_id: scope, ...ours })) return true
      const there = await claims.findOne({ _id, agent_id: scope })
      if (there === null) return undefined
      if (there.row === row._id) return true
      const owner = { _id: there.row, agent_id: scope, [field]: value }
      const isUsed = (await rows.countDocuments(owner, { limit: 1 })) > 0
      if (isUsed || now() - there.at < abandonedAfterMs) return false
      const abandoned = { _id, agent_id: scope, row: there.row, at: there.at }
      return (await claims.updateOne(abandoned, { $set: ours })).modifiedCount === 1 || undefined
    })
  }

  #claimsOf(row: Record<string, unknown>) {
    return claimsOf(this.#options.scope, this.#options.prefixes, row)
  }
}
