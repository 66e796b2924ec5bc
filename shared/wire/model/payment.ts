import type { Timestamp } from './timestamp.ts'

/** A payment session from its owner's point of view. */
export interface PaymentSession {
  id: string
  status: 'pending' | 'completed' | 'failed' | 'expired'
  terms: { amount: string; asset: string; network: string; payTo: string; decimals: number }
  createdAt: Timestamp
  expiresAt: Timestamp
  /** The page where a person pays. */
  captureUrl: string
  /** Whether it is paid in test money. */
  sandbox: boolean
  payer?: string | undefined
  txHash?: string | undefined
  completedAt?: Timestamp | undefined
  /** Whether the session has paid for a task. */
  spent: boolean
  /** Why the payment failed. */
  reason?: string | undefined
}

/** A ledger row from an operator's point of view. */
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
