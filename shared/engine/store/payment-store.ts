import type { Timestamp } from '@parley/wire/model/timestamp'

/** States of a payment. `payments/ledger/payment-transitions.ts` defines the transitions. */
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
  /** The amount in whole units. */
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

/** EIP-3009 authorization as signed by the payer; numbers are decimal strings. */
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

/** A row of the ledger, which describes one payment from its creation to its end. */
export interface PaymentRecord {
  /** Id of the payment or session. */
  id: string
  owner: string
  kind: 'direct' | 'session'
  state: PaymentState
  /** Incremented by each commit and compared by compare-and-set. */
  version: number
  terms: PaymentTerms
  /** Whether the payment uses test money. */
  sandbox: boolean
  /** Unique, because a signed transfer can be used only once. */
  nonceKey?: string
  /** Unique while set, because a purchase (a task or its next message) is paid only once. */
  purpose?: string
  /** The task that the payment is for. */
  taskId?: string
  transfer?: SignedTransfer
  payer?: string
  txHash?: string
  /** Code for the reason why the payment failed or was orphaned. */
  reason?: string
  /** Number of settlement requests that had no definite result. */
  attempts: number
  /** The skill that a session pays for, if its price is not that of the agent. */
  skillId?: string
  /** The http(s) address of the link with which the payer returns to the program that requested the payment. */
  returnUrl?: string
  /** Unguessable token in the URL at which a session is paid. */
  captureToken?: string
  /** When the session expires (milliseconds since 1970). */
  expiresAt?: number
  /** Time of the next check (milliseconds since 1970); absent if no check is needed. */
  dueAt?: number
  createdAt: Timestamp
  updatedAt: Timestamp
  /** When the settlement was confirmed. */
  completedAt?: Timestamp
  /** Hash of the refund transaction, if an operator recorded one. */
  refundTxHash?: string
}

export type PaymentConflict = 'nonce' | 'purpose'

/**
 * The payment ledger, with the same guarantees as `Store`. A row is one document and changes in one atomic commit.
 * Rows of payments that moved money are never removed.
 */
export interface PaymentStore {
  /** Adds a row. Returns `nonce` or `purpose`, and adds nothing, if another row has the same value. */
  addPayment(record: PaymentRecord): Promise<'added' | PaymentConflict>
  /** Replaces the row if its version is still `record.version - 1`. */
  commitPayment(record: PaymentRecord): Promise<'committed' | 'stale' | PaymentConflict>
  /** Removes the row if its version has not changed. */
  removePayment(id: string, version: number): Promise<boolean>
  findPayment(id: string, owner: string): Promise<PaymentRecord | undefined>
  /** Loads a row of any owner. Only the ledger may call it. */
  loadPayment(id: string): Promise<PaymentRecord | undefined>
  findByNonce(nonceKey: string): Promise<PaymentRecord | undefined>
  findByPurpose(purpose: string): Promise<PaymentRecord | undefined>
  findByCapture(captureToken: string): Promise<PaymentRecord | undefined>
  /** Returns the task's payments. */
  listOfTask(taskId: string): Promise<PaymentRecord[]>
  /**
   * Returns the rows in this state that follow the cursor, in order of creation. A page may exceed `limit` slightly,
   * because rows that several processes created in the same microsecond stay together.
   */
  listByState(query: { state: PaymentState; limit: number; cursor?: number }): Promise<{
    items: PaymentRecord[]
    /** Absent on the last page. */
    nextCursor?: number
  }>
  /**
   * Lists rows in these states, those created last first. A page is full or has examined 20,000 rows. Rows that several processes created in the same microsecond may be
   * missing at the border of two pages.
   */
  listPayments(query: {
    states: readonly PaymentState[]
    /** The client ID of the owner. Payments of agents that act for the owner are included. */
    owner?: string | undefined
    /** Only rows that were created before this time. */
    until?: Timestamp | undefined
    limit: number
    cursor?: number | undefined
  }): Promise<{
    items: PaymentRecord[]
    /** Absent on the last page. */
    nextCursor?: number
  }>
  /** Returns rows whose `dueAt` has passed, earliest first. */
  listDuePayments(now: number, limit: number): Promise<PaymentRecord[]>
  /** Returns the number of open sessions for this owner and for all owners. */
  countOpen(owner: string): Promise<{ owner: number; all: number }>
  countPaymentsByState(): Promise<Partial<Record<PaymentState, number>>>
  /**
   * Removes up to `limit` rows without a transfer (`expired`, `failed`) whose last change was before `before`.
   * Returns the number of removed rows.
   */
  removeUnpaid(before: Timestamp, limit: number): Promise<number>

  /**
   * Deducts `atomic` from a test money balance, once per nonce. On its first use, a balance contains `filledWith`.
   * Returns `already` if the transfer was made before.
   */
  moveTestMoney(
    transfer: TestTransfer & { filledWith: bigint },
  ): Promise<'moved' | 'already' | 'insufficient'>
  findTestTransfer(nonceKey: string): Promise<TestTransfer | undefined>
  /** Returns the remaining balance. */
  testPurse(purse: string, filledWith: bigint): Promise<bigint>

  /** Adds the offer, or returns false if another session has the same amount (`amountKeyOf`). */
  addTransferOffer(offer: TransferOffer): Promise<boolean>
  /** Finds the offer with this amount. `amountKeyOf` returns the key. */
  findTransferOffer(amountKey: string): Promise<TransferOffer | undefined>
  /** Returns the first offer of the session. */
  transferOfferOf(sessionId: string): Promise<TransferOffer | undefined>
  /** Returns the offers with the earliest blocks. */
  listTransferOffers(limit: number): Promise<TransferOffer[]>
  /** Returns the number of offers on the network for this owner and for all owners. */
  countTransferOffers(network: string, owner: string): Promise<{ owner: number; all: number }>
  /** Makes the amount available to other sessions. */
  removeTransferOffer(offer: TransferOffer): Promise<void>
  /**
   * Takes or extends the lease for reading transfers of a network, and stores the progress if it is given. Returns the
   * stored progress, or undefined while another holder has the lease. The lease only saves requests: a transfer that two
   * processes read is counted once.
   */
  takeTransferLease(lease: {
    network: string
    holder: string
    now: number
    until: number
    progress?: TransferProgress | undefined
  }): Promise<TransferProgress | undefined>
  transferProgress(network: string): Promise<TransferProgress>
}

/** How far the transfers of a network have been read. */
export interface TransferProgress {
  /** The last block whose transfers were read and counted. */
  readUpTo?: number | undefined
  /** Since when the newest blocks could not be read (milliseconds since 1970). */
  behindSince?: number | undefined
}

/** A session that can be paid with a plain transfer of an amount that no other session has. */
export interface TransferOffer {
  sessionId: string
  owner: string
  /** The terms with the exact amount. */
  terms: PaymentTerms
  /** Only transfers in later blocks count (`TransferSource.startBlock`). */
  fromBlock: number
  /** When the session expires (milliseconds since 1970). */
  expiresAt: number
  /** Transfers up to this time belong to the session (milliseconds since 1970). */
  until: number
}

export interface TestTransfer {
  nonceKey: string
  /** Network, asset and payer, such as `eip155:31337 0xasset 0xpayer`. */
  purse: string
  atomic: bigint
  txHash: string
}
