import {
  type PaymentConflict,
  type PaymentRecord,
  type PaymentState,
  type PaymentStore,
  paymentStates,
  type TestTransfer,
} from '../payment-store.ts'
import type { Inside } from './record.ts'

export interface PaymentRow {
  seq: number
  id: string
  owner: string
  state: PaymentState
  version: number
  updated_at: string
  nonce_key: string | null
  purpose: string | null
  task_id: string | null
  capture_token: string | null
  due_at: number | null
  body: string
}

const columns =
  'seq, id, owner, state, version, updated_at, nonce_key, purpose, task_id, capture_token, due_at, body'
const select = `SELECT ${columns} FROM payments`
const insert = `INSERT INTO payments
  (id, owner, state, version, updated_at, nonce_key, purpose, task_id, capture_token, due_at, body)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const update = `UPDATE payments SET id = ?, owner = ?, state = ?, version = ?, updated_at = ?, nonce_key = ?, purpose = ?,
  task_id = ?, capture_token = ?, due_at = ?, body = ? WHERE seq = ?`
const unpaid = "state IN ('failed', 'expired')"

/** Each question finds its rows by an index of its own. */
export function sqlitePayments(inside: Inside): PaymentStore {
  const { database } = inside
  const one = (where: string, ...values: string[]) =>
    database.statement(`${select} WHERE ${where}`).get(...values) as unknown as PaymentRow | undefined
  const found = (where: string, ...values: string[]) =>
    database.read(() => {
      const row = one(where, ...values)
      return row === undefined ? undefined : paymentOf(row)
    })
  /** Another row that stands for the same. */
  const conflict = ({ id, nonceKey, purpose }: PaymentRecord): PaymentConflict | undefined => {
    const isAnothers = (row: PaymentRow | undefined) => row !== undefined && row.id !== id
    if (nonceKey !== undefined && isAnothers(one('nonce_key = ?', nonceKey))) return 'nonce'
    if (purpose !== undefined && isAnothers(one('purpose = ?', purpose))) return 'purpose'
    return undefined
  }
  return {
    addPayment: (record) =>
      database.write(() => {
        const other = conflict(record)
        if (other !== undefined) return other
        database.statement(insert).run(...valuesOf(record))
        return 'added'
      }),
    commitPayment: (record) =>
      database.write(() => {
        const there = one('id = ?', record.id)
        if (there === undefined || there.version !== record.version - 1) return 'stale'
        const other = conflict(record)
        if (other !== undefined) return other
        database.statement(update).run(...valuesOf(record), there.seq)
        return 'committed'
      }),
    removePayment: (id, version) =>
      database.write(
        () =>
          database.statement('DELETE FROM payments WHERE id = ? AND version = ?').run(id, version).changes ===
          1,
      ),
    findPayment: (id, owner) => found('id = ? AND owner = ?', id, owner),
    loadPayment: (id) => found('id = ?', id),
    findByNonce: (nonceKey) => found('nonce_key = ?', nonceKey),
    findByPurpose: (purpose) => found('purpose = ?', purpose),
    findByCapture: (token) => found('capture_token = ?', token),
    ...lists(inside),
    ...testMoney(inside),
  }
}

type Lists = Pick<
  PaymentStore,
  'listOfTask' | 'listByState' | 'listDuePayments' | 'countOpen' | 'countPaymentsByState' | 'removeUnpaid'
>

function lists({ database }: Inside): Lists {
  const all = (sql: string, ...values: (string | number)[]) =>
    (database.statement(sql).all(...values) as unknown as PaymentRow[]).map((row) => ({
      row,
      record: paymentOf(row),
    }))
  const count = (where: string, ...values: string[]) =>
    Number(database.statement(`SELECT count(*) AS count FROM payments ${where}`).get(...values)?.['count'])
  return {
    listOfTask: (taskId) =>
      database.read(() =>
        all(`${select} INDEXED BY payments_of_task WHERE task_id = ? ORDER BY seq`, taskId).map(
          ({ record }) => record,
        ),
      ),
    listByState: ({ state, limit, cursor = 0 }) =>
      database.read(() => {
        const rows = all(
          `${select} INDEXED BY payments_of_state WHERE state = ? AND seq > ? ORDER BY seq LIMIT ?`,
          state,
          cursor,
          limit + 1,
        )
        const items = rows.slice(0, limit).map(({ record }) => record)
        const last = rows[limit - 1]
        return rows.length > limit && last !== undefined ? { items, nextCursor: last.row.seq } : { items }
      }),
    listDuePayments: (now, limit) =>
      database.read(() =>
        all(`${select} INDEXED BY payments_due WHERE due_at <= ? ORDER BY due_at LIMIT ?`, now, limit).map(
          ({ record }) => record,
        ),
      ),
    countOpen: (owner) =>
      database.read(() => ({
        owner: count("INDEXED BY payments_open_of_owner WHERE state = 'open' AND owner = ?", owner),
        all: count("INDEXED BY payments_of_state WHERE state = 'open'"),
      })),
    countPaymentsByState: () =>
      database.read(() => {
        const counts = paymentStates.map(
          (state) => [state, count('INDEXED BY payments_of_state WHERE state = ?', state)] as const,
        )
        return Object.fromEntries(counts.filter(([, many]) => many > 0))
      }),
    removeUnpaid: (before, limit) =>
      database.write(() => {
        const old = `SELECT seq FROM payments INDEXED BY payments_unpaid
          WHERE ${unpaid} AND updated_at < ? ORDER BY updated_at LIMIT ?`
        return Number(
          database.statement(`DELETE FROM payments WHERE seq IN (${old})`).run(before, limit).changes,
        )
      }),
  }
}

type TestMoney = Pick<PaymentStore, 'moveTestMoney' | 'findTestTransfer' | 'testPurse'>

function testMoney({ database }: Inside): TestMoney {
  const transferOf = (nonceKey: string) =>
    database
      .statement('SELECT nonce_key, purse, atomic, tx_hash FROM test_transfers WHERE nonce_key = ?')
      .get(nonceKey)
  const left = (purse: string, filledWith: bigint) => {
    const row = database.statement('SELECT left_over FROM test_purses WHERE purse = ?').get(purse)
    return row === undefined ? filledWith : BigInt(row['left_over'] as string)
  }
  return {
    moveTestMoney: ({ nonceKey, purse, atomic, txHash, filledWith }) =>
      database.write(() => {
        if (transferOf(nonceKey) !== undefined) return 'already'
        const rest = left(purse, filledWith) - atomic
        if (rest < 0n) return 'insufficient'
        database
          .statement('INSERT OR REPLACE INTO test_purses (purse, left_over) VALUES (?, ?)')
          .run(purse, rest.toString())
        database
          .statement('INSERT INTO test_transfers (nonce_key, purse, atomic, tx_hash) VALUES (?, ?, ?, ?)')
          .run(nonceKey, purse, atomic.toString(), txHash)
        return 'moved'
      }),
    findTestTransfer: (nonceKey) =>
      database.read((): TestTransfer | undefined => {
        const row = transferOf(nonceKey) as Record<string, string> | undefined
        if (row === undefined) return undefined
        const { purse = '', atomic = '', tx_hash: txHash = '' } = row
        return { nonceKey, purse, atomic: BigInt(atomic), txHash }
      }),
    testPurse: (purse, filledWith) => database.read(() => left(purse, filledWith)),
  }
}

function valuesOf(record: PaymentRecord) {
  const { id, owner, state, version, updatedAt, nonceKey, purpose, taskId, captureToken, dueAt, ...body } =
    record
  const nullable = [nonceKey ?? null, purpose ?? null, taskId ?? null, captureToken ?? null, dueAt ?? null]
  return [id, owner, state, version, updatedAt, ...nullable, JSON.stringify(body)]
}

export function paymentOf(row: PaymentRow): PaymentRecord {
  const { id, owner, state, version, updated_at: updatedAt } = row
  const record = { ...(JSON.parse(row.body) as PaymentRecord), id, owner, state, version, updatedAt }
  if (row.nonce_key !== null) record.nonceKey = row.nonce_key
  if (row.purpose !== null) record.purpose = row.purpose
  if (row.task_id !== null) record.taskId = row.task_id
  if (row.capture_token !== null) record.captureToken = row.capture_token
  if (row.due_at !== null) record.dueAt = row.due_at
  return record
}
