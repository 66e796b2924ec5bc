import type { Timestamp } from './timestamp.ts'

/** A payment session as its owner sees it. */
export interface PaymentSession {
  id: string
  status: 'pending' | 'completed' | 'failed' | 'expired'
  terms: { amount: string; asset: string; network: string; payTo: string; decimals: number }
  createdAt: Timestamp
  expiresAt: Timestamp
  /** The page where a person pays. */
  captureUrl: string
  /** Test money. */
  sandbox: boolean
  payer?: string | undefined
  txHash?: string | undefined
  completedAt?: Timestamp | undefined
  /** The session has paid for a task. */
  spent: boolean
  /** Why it failed. */
  reason?: string | undefined
}

/** A row of the ledger as an operator sees it. */
export interface LedgerPayment {
  id: string
  kind: 'direct' | 'session'
  state: string
  reason?: string | undefined
  owner: string
  payer?: string | undefined
  terms: {
    amount: string
    atomic: string
    decimals: number
    asset: string
    network: string
    payTo: string
    extra: { name: string }
  }
  txHash?: string | undefined
  taskId?: string | undefined
  sandbox: boolean
  attempts: number
  createdAt: Timestamp
  updatedAt: Timestamp
  completedAt?: Timestamp | undefined
  refundTxHash?: string | undefined
}
