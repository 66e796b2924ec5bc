import { millisOf } from '@parley/wire/model/timestamp'
import type { PaymentRecord, PaymentState, SignedTransfer } from '../../store/payment-store.ts'

/** All changes of a payment. */
export type PaymentChange =
  /** A signed transfer is claimed for it, identified by its nonce. */
  | { kind: 'claim'; transfer: SignedTransfer; nonceKey: string }
  /** The transfer was refused and no money moved: the session can be paid again. */
  | { kind: 'release' }
  /** The transfer is verified and about to be settled. */
  | { kind: 'settle' }
  /** The outcome is unknown: the settlement is looked up until it is decided. */
  | { kind: 'no-answer'; reason: string }
  | { kind: 'settled'; txHash: string; payer: string }
  | { kind: 'failed'; reason: string }
  /** Assigned to the task that it pays for. */
  | { kind: 'spend'; taskId: string; purpose: string }
  /** The request that spent it was abandoned, and another one continues. */
  | { kind: 'take-over' }
  /** Its task was considered missing but exists: no refund is due. */
  | { kind: 'reclaim'; purpose?: string }
  /** Its purchase was rejected before the work started. */
  | { kind: 'unspend' }
  /** The task has completed. */
  | { kind: 'earn' }
  /** Paid without a result. */
  | { kind: 'orphan'; reason: string }
  | { kind: 'refund'; txHash: string | undefined }
  | { kind: 'expire' }
  /** Its task has not ended: check again later. */
  | { kind: 'recheck' }
  /** This process looks the settlement up, and others wait. */
  | { kind: 'start-lookup' }
  /** The task of a failed payment has been notified. */
  | { kind: 'notified' }

type To = PaymentState | 'paid'

/**
 * Money moves between `settling` and `settled`. A state in between is never reported as failed, and never
 * requires a second payment.
 */
const table: Record<PaymentState, Partial<Record<PaymentChange['kind'], To>>> = {
  open: { claim: 'claimed', expire: 'expired' },
  claimed: { settle: 'settling', release: 'open', failed: 'failed' },
  settling: { 'no-answer': 'unknown', settled: 'paid', failed: 'failed' },
  unknown: { 'no-answer': 'unknown', settled: 'paid', failed: 'failed', 'start-lookup': 'unknown' },
  settled: { spend: 'spent', orphan: 'orphaned' },
  spent: { recheck: 'spent', 'take-over': 'spent', unspend: 'settled', earn: 'earned', orphan: 'orphaned' },
  orphaned: { refund: 'refunded', earn: 'earned', reclaim: 'spent' },
  earned: {},
  refunded: { refund: 'refunded' },
  failed: { notified: 'failed' },
  expired: {},
}

/** Reason of an orphaned payment whose task does not exist. */
export const noTask = 'no_task'

/** When a row in `claimed` or `settling` counts as abandoned by its process. */
export const settlingMaxMs = 90_000
/** Bounds a look-up followed by a settlement, in case the process dies. */
const lookupMaxMs = 2 * settlingMaxMs
export const spentRecheckMs = 30_000
const spentRecheckMaxMs = 3_600_000
const unspentMaxMs = 7 * 24 * 60 * 60 * 1000
const lookupBackoffMs = [1000, 2000, 5000, 15_000, 30_000, 60_000, 300_000, 900_000, 3_600_000]

/** Returns the row after the change, or undefined when the change is not allowed in its state. Pure. */
export function transition(
  record: PaymentRecord,
  change: PaymentChange,
  at: { timestamp: string; now: number },
): PaymentRecord | undefined {
  const to = table[record.state][change.kind]
  if (to === undefined || !isAllowed(record, change)) return undefined
  // A payment that was claimed for a task is spent on it when it settles.
  const state = to === 'paid' ? (record.taskId === undefined ? 'settled' : 'spent') : to
  const next: PaymentRecord = { ...record, state, version: record.version + 1, updatedAt: at.timestamp }
  applyFields(next, change, at.timestamp)
  const dueAt =
    change.kind === 'start-lookup'
      ? at.now + lookupMaxMs
      : change.kind === 'notified'
        ? undefined
        : dueOf(next, at.now)
  if (dueAt === undefined) delete next.dueAt
  else next.dueAt = dueAt
  return next
}

/** Conditions that depend on more than the state. */
function isAllowed({ state, reason, refundTxHash }: PaymentRecord, change: PaymentChange): boolean {
  if (change.kind === 'reclaim') return reason === noTask
  // A refund is recorded before the money is sent; its transaction may be added once, later.
  if (change.kind === 'refund' && state === 'refunded')
    return change.txHash !== undefined && refundTxHash === undefined
  return true
}

function applyFields(next: PaymentRecord, change: PaymentChange, timestamp: string): void {
  switch (change.kind) {
    case 'claim':
      next.transfer = change.transfer
      next.nonceKey = change.nonceKey
      next.payer = change.transfer.authorization.from
      break
    case 'release':
      delete next.transfer
      delete next.nonceKey
      delete next.payer
      break
    case 'no-answer':
      next.attempts += 1
      next.reason = change.reason
      break
    case 'settled':
      next.txHash = change.txHash
      next.payer = change.payer
      next.completedAt = timestamp
      delete next.reason
      break
    case 'spend':
      next.taskId = change.taskId
      next.purpose = change.purpose
      break
    case 'reclaim':
      delete next.reason
      if (change.purpose !== undefined) next.purpose = change.purpose
      break
    case 'unspend':
      delete next.taskId
      delete next.purpose
      break
    // Frees the purpose for another payment.
    case 'failed':
    case 'orphan':
      next.reason = change.reason
      delete next.purpose
      break
    case 'refund':
      if (change.txHash !== undefined) next.refundTxHash = change.txHash
      break
    default:
  }
}

/** When the row has to be reconciled next. */
export function dueOf(record: PaymentRecord, now: number): number | undefined {
  switch (record.state) {
    case 'open':
      return record.expiresAt
    case 'claimed':
    case 'settling':
      return now + settlingMaxMs
    case 'unknown':
      return now + (lookupBackoffMs[Math.min(record.attempts, lookupBackoffMs.length) - 1] ?? 1000)
    case 'settled':
      return now + unspentMaxMs
    case 'spent':
      return now + Math.min(Math.max(now - millisOf(record.createdAt), spentRecheckMs), spentRecheckMaxMs)
    case 'failed':
      // A task may start waiting for the payment right after the failure.
      return record.taskId === undefined ? undefined : now + settlingMaxMs
    default:
      return undefined
  }
}
