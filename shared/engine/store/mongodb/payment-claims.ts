import { insertUnlessThere, untilDone } from '@parley/kit/database/mongodb/database'
import { hashOf } from '@parley/kit/database/mongodb/keys'
import type { Collection } from 'mongodb'
import type { PaymentConflict } from '../payment-store.ts'
import type { PaymentDocument } from './payments.ts'
import type { Inside } from './record.ts'

/** Says which row stands for a nonce or a purpose: its key is unique, so of two rows one is first. */
export interface ClaimDocument {
  _id: string
  agent_id: string
  /** `_id` of the row. */
  row: string
  /** Milliseconds since 1970. */
  at: number
}

/** What a row may stand for, and how a conflict is called. */
const claimable = { nonce_key: 'nonce', purpose: 'purpose' } as const
type Claimable = keyof typeof claimable
type Row = Pick<PaymentDocument, '_id' | Claimable>

const claimKey = (agentId: string, field: Claimable, value: string) =>
  `${agentId}/${claimable[field]}/${hashOf(value)}`

/** What the row stands for, with the keys of the claims. */
export function claimsIn(agentId: string, row: Partial<Row>) {
  return (Object.keys(claimable) as Claimable[]).flatMap((field) => {
    const value = row[field]
    return value === undefined ? [] : [{ field, value, _id: claimKey(agentId, field, value) }]
  })
}

/** A claim whose row does not stand for it is one under way, or after so long one of somebody who died. */
const abandonedAfterMs = 60_000

/**
 * A claim is written before its row and removed after it. After a crash in between it stands for nothing: whoever wants it a
 * minute later takes it over. Who was so slow that this happened to it finds out before it relies on its row.
 */
export function paymentClaims({ agentId, beside, now }: Inside, payments: Collection<PaymentDocument>) {
  const claims = beside<ClaimDocument>('payment_claims')
  const fieldsOf = (row: Partial<Row>) => claimsIn(agentId, row)

  /** True when the claim is the row's. */
  const claim = (row: Row, field: Claimable, value: string): Promise<boolean> =>
    untilDone(async () => {
      const _id = claimKey(agentId, field, value)
      const ours = { row: row._id, at: now() }
      if (await insertUnlessThere(claims, { _id, agent_id: agentId, ...ours })) return true
      const there = await claims.findOne({ _id, agent_id: agentId })
      if (there === null) return undefined
      if (there.row === row._id) return true
      const stands = await payments.countDocuments(
        { _id: there.row, agent_id: agentId, [field]: value },
        { limit: 1 },
      )
      if (stands > 0 || now() - there.at < abandonedAfterMs) return false
      const abandoned = { _id, agent_id: agentId, row: there.row, at: there.at }
      return (await claims.updateOne(abandoned, { $set: ours })).modifiedCount === 1 || undefined
    })

  const release = async (row: Row, fields: readonly Claimable[]) => {
    for (const { field, _id } of fieldsOf(row)) {
      if (fields.includes(field)) await claims.deleteOne({ _id, agent_id: agentId, row: row._id })
    }
  }

  return {
    /** Claims what the row stands for and `before` did not: these fields, or why not. */
    take: async (row: Row, before: Partial<Row> = {}): Promise<Claimable[] | PaymentConflict> => {
      const taken: Claimable[] = []
      for (const { field, value } of fieldsOf(row)) {
        if (before[field] === value) continue
        if (await claim(row, field, value)) taken.push(field)
        else {
          await release(row, taken)
          return claimable[field]
        }
      }
      return taken
    },
    release,
    /** What `before` stood for and `after` does not. */
    releaseUnused: (before: Row, after: Partial<Row> = {}) =>
      release(
        before,
        (Object.keys(claimable) as Claimable[]).filter((field) => before[field] !== after[field]),
      ),
    /** Whether a claim was taken over meanwhile. */
    lost: async (row: Row, taken: readonly Claimable[]): Promise<PaymentConflict | undefined> => {
      for (const { field, _id } of fieldsOf(row)) {
        if (!taken.includes(field)) continue
        const held = await claims.countDocuments({ _id, agent_id: agentId, row: row._id }, { limit: 1 })
        if (held === 0) return claimable[field]
      }
      return undefined
    },
  }
}
