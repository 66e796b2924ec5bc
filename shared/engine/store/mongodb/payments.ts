import { insertUnlessThere } from '@parley/kit/database/mongodb/database'
import { hashOf, keyText } from '@parley/kit/database/mongodb/keys'
import { nowMicros } from '@parley/wire/model/timestamp'
import type { Collection } from 'mongodb'
import { type PaymentRecord, type PaymentState, type PaymentStore, paymentStates } from '../payment-store.ts'
import { paymentClaims } from './payment-claims.ts'
import { documentBound, type Inside, idIn, refuseTooLarge } from './record.ts'
import { testMoney } from './test-money.ts'

export interface PaymentDocument {
  _id: string
  agent_id: string
  owner: string
  state: PaymentState
  version: number
  updated_at: string
  /** When it was added, in microseconds since 1970. */
  made: number
  nonce_key?: string
  purpose?: string
  task_id?: string
  capture?: string
  due_at?: number
  /** The whole record as JSON, but for its version. */
  body: string
}

const mayBeAbsent = ['nonce_key', 'purpose', 'task_id', 'capture', 'due_at'] as const
const unpaid: PaymentState[] = ['failed', 'expired']

/**
 * A nonce and a purpose are claimed before the row that stands for them is written, and let go of after it: see
 * `paymentClaims`.
 */
export function mongodbPayments(inside: Inside): PaymentStore {
  const { agentId } = inside
  const payments = inside.beside<PaymentDocument>('payments')
  const claims = paymentClaims(inside, payments)
  const one = async (filter: Partial<PaymentDocument>) => {
    const found = await payments.findOne({ agent_id: agentId, ...filter })
    return found === null ? undefined : decode(found)
  }
  return {
    addPayment: async (record) => {
      const document = paymentDocument(inside, record, nowMicros())
      const taken = await claims.take(document)
      if (typeof taken === 'string') return taken
      if (!(await insertUnlessThere(payments, document))) throw new Error('A payment has the id of another')
      const lost = await claims.lost(document, taken)
      if (lost === undefined) return 'added'
      await payments.deleteOne({ _id: document._id, agent_id: agentId, version: document.version })
      await claims.release(document, taken)
      return lost
    },
    commitPayment: async (record) => {
      const key = { _id: idIn(inside, record.id), agent_id: agentId, version: record.version - 1 }
      const there = await payments.findOne(key)
      if (there === null) return 'stale'
      const document = paymentDocument(inside, record, there.made)
      const taken = await claims.take(document, there)
      if (typeof taken === 'string') return taken
      const { _id: _key, agent_id: _agent, ...changed } = document
      const gone = mayBeAbsent.filter((field) => document[field] === undefined)
      const $unset = Object.fromEntries(gone.map((field) => [field, '' as const]))
      const change = gone.length === 0 ? { $set: changed } : { $set: changed, $unset }
      if ((await payments.updateOne(key, change)).matchedCount === 0) {
        await claims.release(document, taken)
        return 'stale'
      }
      const lost = await claims.lost(document, taken)
      if (lost !== undefined) {
        await putBack(payments, there, document)
        await claims.release(document, taken)
        return lost
      }
      await claims.releaseUnused(there, document)
      return 'committed'
    },
    findPayment: (id, owner) => one({ _id: idIn(inside, id), owner: keyText(owner) }),
    loadPayment: (id) => one({ _id: idIn(inside, id) }),
    findByNonce: (nonceKey) => one({ nonce_key: keyText(nonceKey) }),
    findByPurpose: (purpose) => one({ purpose: keyText(purpose) }),
    findByCapture: (captureToken) => one({ capture: hashOf(captureToken) }),
    ...lists(inside, payments),
    ...removals(inside, payments, claims),
    ...testMoney(inside),
  }
}

/** The row as it was before the change, with a version of its own: nobody goes on from what is taken back. */
async function putBack(
  payments: Collection<PaymentDocument>,
  before: PaymentDocument,
  after: PaymentDocument,
): Promise<void> {
  const key = { _id: after._id, agent_id: after.agent_id, version: after.version }
  const { _id: _key, ...rest } = before
  await payments.replaceOne(key, { ...rest, version: after.version + 1 })
}

function removals(
  inside: Inside,
  payments: Collection<PaymentDocument>,
  claims: ReturnType<typeof paymentClaims>,
): Pick<PaymentStore, 'removePayment' | 'removeUnpaid'> {
  const { agentId } = inside
  return {
    removePayment: async (id, version) => {
      const removed = await payments.findOneAndDelete({
        _id: idIn(inside, id),
        agent_id: agentId,
        version,
      })
      if (removed === null) return false
      await claims.releaseUnused(removed)
      return true
    },
    removeUnpaid: async (before, limit) => {
      const old = await payments
        .find({ agent_id: agentId, state: { $in: unpaid }, updated_at: { $lt: keyText(before) } })
        .sort({ updated_at: 1 })
        .limit(limit)
        .toArray()
      let removed = 0
      for (const { _id, version } of old) {
        const document = await payments.findOneAndDelete({ _id, agent_id: agentId, version })
        if (document === null) continue
        removed += 1
        await claims.releaseUnused(document)
      }
      return removed
    },
  }
}

type Lists = Pick<
  PaymentStore,
  'listOfTask' | 'listByState' | 'listDuePayments' | 'countOpen' | 'countPaymentsByState'
>

function lists({ agentId }: Inside, payments: Collection<PaymentDocument>): Lists {
  const ours = { agent_id: agentId }
  const open = { ...ours, state: 'open' as const }
  return {
    listOfTask: async (taskId) => {
      const found = payments.find({ ...ours, task_id: keyText(taskId) }).sort({ made: 1 })
      return (await found.toArray()).map(decode)
    },
    listByState: async ({ state, limit, cursor = 0 }) => {
      const found = await payments
        .find({ ...ours, state: keyText(state) as PaymentState, made: { $gt: cursor } })
        .sort({ made: 1 })
        .limit(limit + 1)
        .toArray()
      const page = found.slice(0, limit)
      const [last, next] = [page.at(-1), found[limit]]
      if (last === undefined || next === undefined) return { items: page.map(decode) }
      // Two processes may make rows in the same microsecond: the cursor cannot point between them.
      if (next.made === last.made) {
        const listed = page.filter(({ made }) => made === last.made).map(({ _id }) => _id)
        const tied = { ...ours, state: last.state, made: last.made, _id: { $nin: listed } }
        page.push(...(await payments.find(tied).toArray()))
      }
      return { items: page.map(decode), nextCursor: last.made }
    },
    listDuePayments: async (now, limit) => {
      const due = payments.find({ ...ours, due_at: { $exists: true, $lte: now } })
      return (await due.sort({ due_at: 1 }).limit(limit).toArray()).map(decode)
    },
    countOpen: async (owner) => ({
      owner: await payments.countDocuments({ ...open, owner: keyText(owner) }),
      all: await payments.countDocuments(open),
    }),
    countPaymentsByState: async () => {
      const counts = await Promise.all(
        paymentStates.map(
          async (state) => [state, await payments.countDocuments({ ...ours, state })] as const,
        ),
      )
      return Object.fromEntries(counts.filter(([, count]) => count > 0))
    },
  }
}

export function paymentDocument(inside: Inside, record: PaymentRecord, made: number): PaymentDocument {
  const { version, ...rest } = record
  const body = JSON.stringify(rest)
  refuseTooLarge(body, documentBound)
  const { nonceKey, purpose, taskId, captureToken, dueAt } = record
  return {
    _id: idIn(inside, record.id),
    agent_id: inside.agentId,
    owner: keyText(record.owner),
    state: record.state,
    version,
    updated_at: record.updatedAt,
    made,
    body,
    ...(nonceKey !== undefined && { nonce_key: keyText(nonceKey) }),
    ...(purpose !== undefined && { purpose: keyText(purpose) }),
    ...(taskId !== undefined && { task_id: keyText(taskId) }),
    ...(captureToken !== undefined && { capture: hashOf(captureToken) }),
    ...(dueAt !== undefined && { due_at: dueAt }),
  }
}

function decode({ body, version }: PaymentDocument): PaymentRecord {
  return { ...(JSON.parse(body) as PaymentRecord), version }
}
