import { ownsFor } from '@parley/kit/auth/caller'
import {
  type DocumentDatabase,
  type Documents,
  declareCollection,
  type Found,
  type Row,
  type Written,
} from '@parley/kit/database/documents'
import { keyText } from '@parley/kit/database/keys'
import { millisOf } from '@parley/wire/model/timestamp'
import {
  type PaymentConflict,
  type PaymentRecord,
  type PaymentStore,
  paymentStates,
} from './payment-store.ts'
import { testMoney } from './test-money.ts'
import { transferOffers } from './transfer-offers.ts'

const fields = {
  id: 'key',
  owner: 'key',
  state: 'text',
  version: 'integer',
  updated_at: 'text',
  nonce_key: 'key?',
  purpose: 'key?',
  task_id: 'key?',
  capture_token: 'secret?',
  due_at: 'integer?',
  /** The record as JSON, without its version. */
  body: 'text',
} as const

const claims = { nonce_key: 'nonce', purpose: 'purpose' } as const

export const paymentCollection = declareCollection({
  name: 'payments',
  fields,
  key: ['id'],
  sequence: true,
  unique: { fields: ['nonce_key', 'purpose'], version: 'version' },
  indexes: {
    of_nonce: { equals: ['nonce_key'] },
    of_purpose: { equals: ['purpose'] },
    of_capture: { equals: ['capture_token'] },
    of_task: { equals: ['task_id'], order: 'sequence', sqlite: 'payments_of_task' },
    of_state: { equals: ['state'], order: 'sequence', sqlite: 'payments_of_state' },
    due: { order: 'due_at', sqlite: 'payments_due' },
    open_of_owner: { only: { state: ['open'] }, equals: ['owner'], sqlite: 'payments_open_of_owner' },
    unpaid: { only: { state: ['failed', 'expired'] }, order: 'updated_at', sqlite: 'payments_unpaid' },
  },
  mongodb: {
    id: ({ id }) => keyText(String(id)),
    without: ['id'],
    names: { capture_token: 'capture' },
    sequence: 'made',
    claims: { collection: 'payment_claims', prefixes: claims },
  },
})

/** A row in which every field is present, possibly as undefined, so that a forgotten field fails the type check. */
type CompleteRow = { [N in keyof Required<Row<typeof fields>>]: Row<typeof fields>[N] }

/**
 * @param whole whether the body contains every field, because a database may not return the fields that it compares
 */
export function paymentRow(record: PaymentRecord, whole: boolean): CompleteRow {
  const { version, ...rest } = record
  const { id, owner, state, updatedAt, nonceKey, purpose, taskId, captureToken, dueAt, ...others } = rest
  return {
    id,
    owner,
    state,
    version,
    updated_at: updatedAt,
    nonce_key: nonceKey,
    purpose,
    task_id: taskId,
    capture_token: captureToken,
    due_at: dueAt,
    body: JSON.stringify(whole ? rest : others),
  }
}

export function paymentOf(row: Found<typeof fields>): PaymentRecord {
  const record: PaymentRecord = JSON.parse(row.body)
  record.version = row.version
  if (record.id === undefined) complete(record, row)
  return record
}

function complete(record: PaymentRecord, row: Found<typeof fields>): void {
  const { id = '', owner = '', updated_at: updatedAt, due_at: dueAt, purpose } = row
  const { nonce_key: nonceKey, task_id: taskId, capture_token: captureToken } = row
  Object.assign(record, { id, owner, updatedAt, state: row.state })
  if (nonceKey !== undefined) record.nonceKey = nonceKey
  if (purpose !== undefined) record.purpose = purpose
  if (taskId !== undefined) record.taskId = taskId
  if (captureToken !== undefined) record.captureToken = captureToken
  if (dueAt !== undefined) record.dueAt = dueAt
}

type Payments = Documents<typeof fields, 'id', keyof typeof paymentCollection.indexes>

/** The number of rows that one page examines, and that are read together. */
const [examinedMax, batchSize] = [20_000, 200]

/** The order of insertion is the same in all states, so that one position continues the list in each of them. */
async function listNewest(
  payments: Payments,
  { states, owner, until, limit, cursor }: Parameters<PaymentStore['listPayments']>[0],
): ReturnType<PaymentStore['listPayments']> {
  const items: PaymentRecord[] = []
  let before = cursor ?? Number.MAX_SAFE_INTEGER
  for (let examined = 0; examined < examinedMax; ) {
    const query = { before, descending: true, limit: batchSize }
    const found = await Promise.all(states.map((state) => payments.find('of_state', { state }, query)))
    const rows = found
      .flat()
      .sort((a, b) => b.sequence - a.sequence)
      .slice(0, batchSize)
    for (const row of rows) {
      if (items.length >= limit) return { items, nextCursor: before }
      before = row.sequence
      const record = paymentOf(row)
      const isVisible = owner === undefined || ownsFor({ id: owner }, record.owner)
      if (isVisible && (until === undefined || millisOf(record.createdAt) < millisOf(until)))
        items.push(record)
    }
    examined += rows.length
    if (rows.length < batchSize) return { items }
  }
  return { items, nextCursor: before }
}

export function paymentStore(database: DocumentDatabase): PaymentStore {
  const payments = database.collection(paymentCollection)
  const first = async (found: Promise<Found<typeof fields>[]>) => {
    const [row] = await found
    return row && paymentOf(row)
  }
  return {
    addPayment: async (record) => {
      const written = await payments.insert(paymentRow(record, database.shared))
      if (written === 'refused') throw new Error('A payment has the id of another one')
      return written === 'written' ? 'added' : conflictOf(written)
    },
    commitPayment: async (record) => {
      const { id, ...set } = paymentRow(record, database.shared)
      const written = await payments.update({ id }, set, { version: record.version - 1 })
      if (written === 'refused') return 'stale'
      return written === 'written' ? 'committed' : conflictOf(written)
    },
    removePayment: async (id, version) => (await payments.remove({ id }, { version })) !== undefined,
    findPayment: async (id, owner) => {
      const row = await payments.get({ id }, { owner })
      return row && paymentOf(row)
    },
    loadPayment: async (id) => {
      const row = await payments.get({ id })
      return row && paymentOf(row)
    },
    findByNonce: (nonceKey) => first(payments.find('of_nonce', { nonce_key: nonceKey })),
    findByPurpose: (purpose) => first(payments.find('of_purpose', { purpose })),
    findByCapture: (token) => first(payments.find('of_capture', { capture_token: token })),
    listOfTask: async (taskId) => (await payments.find('of_task', { task_id: taskId })).map(paymentOf),
    listByState: async ({ state, limit, cursor = 0 }) => {
      const { items, next } = await payments.page('of_state', { state }, { limit, after: cursor })
      const records = items.map(paymentOf)
      return next === undefined ? { items: records } : { items: records, nextCursor: next }
    },
    listPayments: (query) => listNewest(payments, query),
    listDuePayments: async (now, limit) =>
      (await payments.find('due', {}, { atMost: now, limit })).map(paymentOf),
    countOpen: async (owner) => ({
      owner: await payments.count('open_of_owner', { owner }),
      all: await payments.count('of_state', { state: 'open' }),
    }),
    countPaymentsByState: async () => {
      const counts = await Promise.all(
        paymentStates.map(async (state) => [state, await payments.count('of_state', { state })] as const),
      )
      return Object.fromEntries(counts.filter(([, count]) => count > 0))
    },
    removeUnpaid: (before, limit) => payments.removeMany('unpaid', {}, { before, limit }),
    ...testMoney(database),
    ...transferOffers(database),
  }
}

function conflictOf({ taken }: Exclude<Written, string>): PaymentConflict {
  return taken === 'nonce_key' ? 'nonce' : 'purpose'
}
