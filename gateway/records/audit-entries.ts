import { type DocumentDatabase, declareCollection } from '@parley/kit/database/documents'
import { z } from 'zod'

const text = z.string().optional()

/** An entry of the audit log. */
export const storedAuditEntry = z.object({
  who: text,
  address: text,
  action: z.string(),
  target: text,
  allowed: z.boolean(),
  reason: text,
  requestId: text,
})

export interface AuditEntry extends z.output<typeof storedAuditEntry> {
  id: string
  /** Microseconds since 1970, unique in the process that recorded the entry. */
  at: number
}

export interface AuditQuery {
  /** Exclusive bounds in microseconds since 1970. */
  after: number
  before: number
  allowed?: boolean | undefined
  limit: number
}

/** The stored part of the audit log. Accepted actions and refusals are counted apart. */
export interface AuditEntries {
  add(entries: readonly (AuditEntry & { source: string })[]): Promise<void>
  /** Newest first. */
  list(query: AuditQuery): Promise<AuditEntry[]>
  /** Removes the oldest entries of the source beyond `max`. */
  trimSource(allowed: boolean, source: string, max: number): Promise<void>
  /** Removes the oldest entries of one kind beyond `max`. */
  trim(allowed: boolean, max: number): Promise<void>
  /** Removes entries from before this time. */
  removeBefore(at: number): Promise<void>
}

export const auditCollection = declareCollection({
  name: 'gateway_audit',
  fields: {
    id: 'key',
    kind: 'key',
    /** The client, or the address of a request without one. */
    source: 'key',
    at: 'integer',
    body: 'text',
  },
  key: ['id'],
  indexes: {
    age: { order: 'at', sqlite: 'gateway_audit_age' },
    ofKind: { equals: ['kind'], order: 'at' },
    ofSource: { equals: ['kind', 'source'], order: 'at' },
  },
})

/** Number of entries that one call removes, so that a write does not block the others. */
const removedMax = 5000

const kindOf = (allowed: boolean) => (allowed ? 'allowed' : 'refused')

export function auditEntries(database: DocumentDatabase): AuditEntries {
  const entries = database.collection(auditCollection)
  return {
    add: async (added) => {
      const rows = added.map(({ id, at, source, ...entry }) => ({
        id,
        kind: kindOf(entry.allowed),
        source,
        at,
        body: JSON.stringify({ id, ...entry }),
      }))
      await Promise.all(rows.map((row) => entries.insert(row)))
    },
    list: async ({ allowed, ...query }) => {
      const bounds = { ...query, descending: true }
      const found =
        allowed === undefined
          ? await entries.find('age', {}, bounds)
          : await entries.find('ofKind', { kind: kindOf(allowed) }, bounds)
      return found.map(({ at, body }) => ({ ...withId.parse(JSON.parse(body)), at }))
    },
    trimSource: async (allowed, source, max) => {
      const equals = { kind: kindOf(allowed), source }
      const excess = (await entries.count('ofSource', equals)) - max
      if (excess > 0) await entries.removeMany('ofSource', equals, { limit: excess })
    },
    trim: async (allowed, max) => {
      const equals = { kind: kindOf(allowed) }
      const excess = (await entries.count('ofKind', equals)) - max
      if (excess > 0) await entries.removeMany('ofKind', equals, { limit: Math.min(removedMax, excess) })
    },
    removeBefore: async (at) => {
      await entries.removeMany('age', {}, { before: at, limit: removedMax })
    },
  }
}

const withId = storedAuditEntry.extend({ id: z.string() })
