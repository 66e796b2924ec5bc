import { millisOf } from '@parley/wire/model/timestamp'
import type { PaymentRecord, PaymentState, PaymentTerms, SignedTransfer } from '../../store/payment-store.ts'

/** Every change that can be made to a payment. */
export type PaymentChange =
  /** A signed transfer, identified by its nonce, is claimed for the payment. */
  | { kind: 'claim'; transfer: SignedTransfer; nonceKey: string }
  /** The transfer was refused and no money moved, so the session can be paid again. */
  | { kind: 'release' }
  /** The transfer is verified and about to be settled. */
  | { kind: 'settle' }
  /** The outcome is unknown, so the settlement is looked up until it is decided. */
  | { kind: 'no-answer'; reason: string }
  | { kind: 'settled'; txHash: string; payer: string }
  /** A plain transfer paid the session. `terms` contain the exact amount, and `minedAt` is in milliseconds since 1970. */
  | {
      kind: 'transferred'
      transferKey: string
      txHash: string
      payer: string
      terms: PaymentTerms
      minedAt: number
    }
  | { kind: 'failed'; reason: string }
  /** The payment is assigned to the task that it pays for. */
  | { kind: 'spend'; taskId: string; purpose: string }
  /** The request that spent the payment was abandoned, and another request continues. */
  | { kind: 'take-over' }
  /** The payment's task was considered missing but exists, so no refund is due. */
  | { kind: 'reclaim'; purpose?: string }
  /** The payment's purchase was rejected before the work started. */
  | { kind: 'unspend' }
  /** The task has completed. */
  | { kind: 'earn' }
  /** The payment was made, but the task has no result. */
  | { kind: 'orphan'; reason: string }
  | { kind: 'refund'; txHash: string | undefined }
  | { kind: 'expire' }
  /** The payment's task has not ended, so it is checked again later. */
  | { kind: 'recheck' }
  /** This process looks up the settlement while other processes wait. */
  | { kind: 'start-lookup' }
  /** The failed payment's task has been notified. */
  | { kind: 'notified' }

type To = PaymentState | 'paid'

/**
 * Money moves between `settling` and `settled`. A state between the two is never reported as failed, and
 * never requires a second payment. A plain transfer that was mined in time pays a session whose signed transfer cannot
 * have moved money, even if the session has expired since.
 */
const table: Record<PaymentState, Partial<Record<PaymentChange['kind'], To>>> = {
  open: { claim: 'claimed', expire: 'expired', transferred: 'paid' },
  claimed: { settle: 'settling', release: 'open', failed: 'failed', transferred: 'paid' },
  settling: { 'no-answer': 'unknown', settled: 'paid', failed: 'failed' },
  unknown: { 'no-answer': 'unknown', settled: 'paid', failed: 'failed', 'start-lookup': 'unknown' },
  settled: { spend: 'spent', orphan: 'orphaned' },
  spent: { recheck: 'spent', 'take-over': 'spent', unspend: 'settled', earn: 'earned', orphan: 'orphaned' },
  orphaned: { refund: 'refunded', earn: 'earned', reclaim: 'spent' },
  earned: {},
  refunded: { refund: 'refunded' },
  failed: { notified: 'failed' },
  expired: { transferred: 'paid' },
}

/** The reason for orphaning a payment whose task does not exist. */
export const noTask = 'no_task'

/** The time after which a row in `claimed` or `settling` counts as abandoned by its process. */
export const settlingMaxMs = 90_000
/** Limits a look-up followed by a settlement, in case the process dies. */
const lookupMaxMs = 2 * settlingMaxMs
export const spentRecheckMs = 30_000
const spentRecheckMaxMs = 3_600_000
const unspentMaxMs = 7 * 24 * 60 * 60 * 1000
const lookupBackoffMs = [1000, 2000, 5000, 15_000, 30_000, 60_000, 300_000, 900_000, 3_600_000]

/** Returns the row after the change, or undefined if its state does not allow the change. Pure. */
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

/** Checks the conditions that depend on more than the state. */
function isAllowed(record: PaymentRecord, change: PaymentChange): boolean {
  const { kind, state, reason, refundTxHash, expiresAt = 0 } = record
  if (change.kind === 'transferred') return kind === 'session' && change.minedAt <= expiresAt
  if (change.kind === 'reclaim') return reason === noTask
  // A refund is recorded before the money is sent. Its transaction may be added once, later.
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
    case 'transferred':
      delete next.transfer
      next.nonceKey = change.transferKey
      next.terms = change.terms
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
    // This releases the purpose for another payment.
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

/** Returns the time at which the row must next be reconciled. */
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
      // A task may start to wait for the payment right after the failure.
      return record.taskId === undefined ? undefined : now + settlingMaxMs
    default:
      return undefined
  }
}
