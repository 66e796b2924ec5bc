import type { Timestamp } from '@parley/wire/model/timestamp'

/** States of a payment. The transitions are in `payments/ledger/payment-transitions.ts`. */
export const paymentStates = [
  'open',
  'claimed',
  'settling',
  'unknown',
  'settled',
  'spent',
  'earned',
  'orphaned',
  'refunded',
  'failed',
  'expired',
] as const
export type PaymentState = (typeof paymentStates)[number]

/** Amount, asset and recipient of a payment. */
export interface PaymentTerms {
  /** In whole units. */
  amount: string
  /** The amount in atomic units. */
  atomic: string
  decimals: number
  asset: string
  network: string
  payTo: string
  /** The token's EIP-712 domain. */
  extra: { name: string; version: string }
}

/** EIP-3009 authorization as the payer signed it; numbers are decimal texts. */
export interface SignedTransfer {
  signature: string
  authorization: {
    from: string
    to: string
    value: string
    validAfter: string
    validBefore: string
    nonce: string
  }
}

/** One row of the ledger: one payment from its creation to its end. */
export interface PaymentRecord {
  /** The id of the session, if it is one. */
  id: string
  owner: string
  kind: 'direct' | 'session'
  state: PaymentState
  /** Incremented by each commit; the value that compare-and-set compares. */
  version: number
  terms: PaymentTerms
  /** Test money. */
  sandbox: boolean
  /** Unique: a signed transfer is used once. */
  nonceKey?: string
  /** Unique while it is set: a purchase (a task or its next message) is paid once. */
  purpose?: string
  /** The task that it is for. */
  taskId?: string
  transfer?: SignedTransfer
  payer?: string
  txHash?: string
  /** Code of the reason why it failed or was orphaned. */
  reason?: string
  /** Number of settlement requests without a definite result. */
  attempts: number
  /** Unguessable; part of the URL at which a session is paid. */
  captureToken?: string
  /** A session can be paid until then (milliseconds since 1970). */
  expiresAt?: number
  /** Time of the next check (milliseconds since 1970); absent when none is needed. */
  dueAt?: number
  createdAt: Timestamp
  updatedAt: Timestamp
  /** When the settlement was confirmed. */
  completedAt?: Timestamp
  /** Transaction of the refund, if an operator recorded it. */
  refundTxHash?: string
}

export type PaymentConflict = 'nonce' | 'purpose'

/**
 * The ledger of payments, with the guarantees of `Store`. A row is one document and changes in one atomic commit. Rows in
 * which money has moved are never removed.
 */
export interface PaymentStore {
  /** Adds a row. Returns `nonce` or `purpose`, without a change, when another row has the same one. */
  addPayment(record: PaymentRecord): Promise<'added' | PaymentConflict>
  /** Replaces the row if its version is still `record.version - 1`. */
  commitPayment(record: PaymentRecord): Promise<'committed' | 'stale' | PaymentConflict>
  /** Removes the row if it still has this version. */
  removePayment(id: string, version: number): Promise<boolean>
  findPayment(id: string, owner: string): Promise<PaymentRecord | undefined>
  /** For the ledger only: a row of any owner. */
  loadPayment(id: string): Promise<PaymentRecord | undefined>
  findByNonce(nonceKey: string): Promise<PaymentRecord | undefined>
  findByPurpose(purpose: string): Promise<PaymentRecord | undefined>
  findByCapture(captureToken: string): Promise<PaymentRecord | undefined>
  /** The payments of the task. */
  listOfTask(taskId: string): Promise<PaymentRecord[]>
  /**
   * Rows of the state after the cursor, in the order of their creation. A page may have a few more than `limit`: rows that
   * several processes created in the same microsecond are not split.
   */
  listByState(query: { state: PaymentState; limit: number; cursor?: number }): Promise<{
    items: PaymentRecord[]
    /** Absent at the end. */
    nextCursor?: number
  }>
  /** Rows whose `dueAt` has passed, earliest first. */
  listDuePayments(now: number, limit: number): Promise<PaymentRecord[]>
  /** Number of open sessions of the owner, and of all owners. */
  countOpen(owner: string): Promise<{ owner: number; all: number }>
  countPaymentsByState(): Promise<Partial<Record<PaymentState, number>>>
  /**
   * Removes up to `limit` rows without a transfer (`expired`, `failed`) that were last changed before `before`. Returns the
   * number.
   */
  removeUnpaid(before: Timestamp, limit: number): Promise<number>

  /**
   * Test money: deducts `atomic` from a balance, once per nonce. A balance is `filledWith` at its first use. `already`: the
   * transfer was made before.
   */
  moveTestMoney(
    transfer: TestTransfer & { filledWith: bigint },
  ): Promise<'moved' | 'already' | 'insufficient'>
  findTestTransfer(nonceKey: string): Promise<TestTransfer | undefined>
  /** The remaining balance. */
  testPurse(purse: string, filledWith: bigint): Promise<bigint>
}

export interface TestTransfer {
  nonceKey: string
  /** Network, asset and payer: `eip155:31337 0xasset 0xpayer`. */
  purse: string
  atomic: bigint
  txHash: string
}
