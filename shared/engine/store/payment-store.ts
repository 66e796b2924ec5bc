import type { Timestamp } from '@parley/wire/model/timestamp'

/** What may become of a payment; what leads where stands in `payments/ledger/payment-transitions.ts`. */
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

/** What one payment pays: how much of what, where, to whom. */
export interface PaymentTerms {
  /** In whole units. */
  amount: string
  /** The same in atomic units. */
  atomic: string
  decimals: number
  asset: string
  network: string
  payTo: string
  /** The token's EIP-712 domain. */
  extra: { name: string; version: string }
}

/** EIP-3009, as the payer signed it; numbers are decimal texts. */
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

/** One row of the ledger: one payment from its first trace to its end. */
export interface PaymentRecord {
  /** Of a session: its id. */
  id: string
  owner: string
  kind: 'direct' | 'session'
  state: PaymentState
  /** Raised by one with each commit; the compare of compare-and-set. */
  version: number
  terms: PaymentTerms
  /** Test money. */
  sandbox: boolean
  /** Unique while it stands: one signed transfer is taken once. */
  nonceKey?: string
  /** Unique while it stands: what is bought (a task, the next message of one) is paid once. */
  purpose?: string
  /** The task that it pays for. */
  taskId?: string
  transfer?: SignedTransfer
  payer?: string
  txHash?: string
  /** Why it failed or was orphaned; a code. */
  reason?: string
  /** How often the settlement was asked for without an answer that decides. */
  attempts: number
  /** Unguessable; part of the address where a session is paid. */
  captureToken?: string
  /** A session can be paid until then (milliseconds since 1970). */
  expiresAt?: number
  /** When it is to be looked at again (milliseconds since 1970); absent when nothing will happen to it by itself. */
  dueAt?: number
  createdAt: Timestamp
  updatedAt: Timestamp
  /** When the payment was known to be settled. */
  completedAt?: Timestamp
  /** Transaction of the refund, where an operator has named one. */
  refundTxHash?: string
}

export type PaymentConflict = 'nonce' | 'purpose'

/**
 * The ledger of payments, durable with each resolved promise; promises as of `Store`. A row is one document and changes in
 * one atomic commit. Rows in which money has moved are never removed.
 */
export interface PaymentStore {
  /** Adds a row. `nonce` or `purpose`: another row stands for it already, and nothing is added. */
  addPayment(record: PaymentRecord): Promise<'added' | PaymentConflict>
  /** Replaces the row if its version is still `record.version - 1`. */
  commitPayment(record: PaymentRecord): Promise<'committed' | 'stale' | PaymentConflict>
  /** Removes the row if its version is still that one. */
  removePayment(id: string, version: number): Promise<boolean>
  findPayment(id: string, owner: string): Promise<PaymentRecord | undefined>
  /** For the ledger alone: whoever owns it. */
  loadPayment(id: string): Promise<PaymentRecord | undefined>
  findByNonce(nonceKey: string): Promise<PaymentRecord | undefined>
  findByPurpose(purpose: string): Promise<PaymentRecord | undefined>
  findByCapture(captureToken: string): Promise<PaymentRecord | undefined>
  /** Those that pay, or paid, for the task. */
  listOfTask(taskId: string): Promise<PaymentRecord[]>
  /**
   * Those of that state in the order in which they were made, behind the cursor. A page may have a few more than `limit`:
   * rows that several processes made in the same microsecond are not divided.
   */
  listByState(query: { state: PaymentState; limit: number; cursor?: number }): Promise<{
    items: PaymentRecord[]
    /** Absent at the end. */
    nextCursor?: number
  }>
  /** Those whose `dueAt` has passed, longest first. */
  listDuePayments(now: number, limit: number): Promise<PaymentRecord[]>
  /** How many sessions of the owner, and of all, can still be paid. */
  countOpen(owner: string): Promise<{ owner: number; all: number }>
  countPaymentsByState(): Promise<Partial<Record<PaymentState, number>>>
  /** Removes rows in which no money moved (`expired`, `failed`), last changed before `before`; at most `limit`. */
  removeUnpaid(before: Timestamp, limit: number): Promise<number>

  /**
   * Test money: takes `atomic` out of the purse, once per nonce. A purse holds `filledWith` when it is first used.
   * The same transfer again is `already`, with the first one's time.
   */
  moveTestMoney(
    transfer: TestTransfer & { filledWith: bigint },
  ): Promise<'moved' | 'already' | 'insufficient'>
  findTestTransfer(nonceKey: string): Promise<TestTransfer | undefined>
  /** What is left in the purse. */
  testPurse(purse: string, filledWith: bigint): Promise<bigint>
}

export interface TestTransfer {
  nonceKey: string
  /** Whose money, of which asset: `eip155:31337 0xasset 0xpayer`. */
  purse: string
  atomic: bigint
  txHash: string
}
