import { millisOf } from '@parley/wire/model/timestamp'
import type { PaymentRecord, PaymentState, SignedTransfer } from '../../store/payment-store.ts'

/** Everything that can happen to a payment. */
export type PaymentChange =
  /** A signed transfer is taken for it, by its nonce. */
  | { kind: 'claim'; transfer: SignedTransfer; nonceKey: string }
  /** The transfer was refused before anything moved: the session can be paid again. */
  | { kind: 'release' }
  /** The transfer is verified, and the facilitator is about to be asked to settle it. */
  | { kind: 'settle' }
  /** No answer, or one that does not decide: it is looked up until it is known. */
  | { kind: 'no-answer'; reason: string }
  | { kind: 'settled'; txHash: string; payer: string }
  | { kind: 'failed'; reason: string }
  /** Bound to what it buys. */
  | { kind: 'spend'; taskId: string; purpose: string }
  /** Whoever was to make what it is bound to has died: another one goes on. */
  | { kind: 'take-over' }
  /** Its task was thought not to be there, and comes after all: nothing is owed any more. */
  | { kind: 'reclaim'; purpose?: string }
  /** What it was bound to was refused before it began. */
  | { kind: 'unspend' }
  /** The task has completed. */
  | { kind: 'earn' }
  /** Paid, and nothing was had for it. */
  | { kind: 'orphan'; reason: string }
  | { kind: 'refund'; txHash: string | undefined }
  | { kind: 'expire' }
  /** Its task has not ended yet. */
  | { kind: 'wait' }
  /** Of several processes this one looks it up. */
  | { kind: 'ask' }
  /** What waited for a payment that failed has been told. */
  | { kind: 'told' }

type To = PaymentState | 'paid'

/** Money moves between `settling` and `settled`; what lies between is never told as failed, and never asked of the payer again. */
const table: Record<PaymentState, Partial<Record<PaymentChange['kind'], To>>> = {
  open: { claim: 'claimed', expire: 'expired' },
  claimed: { settle: 'settling', release: 'open', failed: 'failed' },
  settling: { 'no-answer': 'unknown', settled: 'paid', failed: 'failed' },
  unknown: { 'no-answer': 'unknown', settled: 'paid', failed: 'failed', ask: 'unknown' },
  settled: { spend: 'spent', orphan: 'orphaned' },
  spent: { wait: 'spent', 'take-over': 'spent', unspend: 'settled', earn: 'earned', orphan: 'orphaned' },
  orphaned: { refund: 'refunded', earn: 'earned', reclaim: 'spent' },
  earned: {},
  refunded: { refund: 'refunded' },
  failed: { told: 'failed' },
  expired: {},
}

/** Why a payment is listed for refund whose task is not there. */
export const noTask = 'no_task'

/** `settling` of a process that died; `spent` until its task has ended; a completed session that nobody uses. */
export const settlingMaxMs = 90_000
/** A look-up and another settlement, of a process that died. */
const askedMaxMs = 2 * settlingMaxMs
export const spentAgainMs = 30_000
const spentAgainMaxMs = 3_600_000
const unspentMaxMs = 7 * 24 * 60 * 60 * 1000
const unknownAgainMs = [1000, 2000, 5000, 15_000, 30_000, 60_000, 300_000, 900_000, 3_600_000]

/** The row after the change; pure. Undefined when the table does not know it. */
export function changed(
  record: PaymentRecord,
  change: PaymentChange,
  at: { timestamp: string; now: number },
): PaymentRecord | undefined {
  const to = table[record.state][change.kind]
  if (to === undefined || !isMeant(record, change)) return undefined
  // What a payment was claimed for, it pays for.
  const state = to === 'paid' ? (record.taskId === undefined ? 'settled' : 'spent') : to
  const next: PaymentRecord = { ...record, state, version: record.version + 1, updatedAt: at.timestamp }
  fillIn(next, change, at.timestamp)
  const dueAt =
    change.kind === 'ask' ? at.now + askedMaxMs : change.kind === 'told' ? undefined : dueOf(next, at.now)
  if (dueAt === undefined) delete next.dueAt
  else next.dueAt = dueAt
  return next
}

/** What the state alone does not tell. */
function isMeant({ state, reason, refundTxHash }: PaymentRecord, change: PaymentChange): boolean {
  if (change.kind === 'reclaim') return reason === noTask
  // Said before the money is sent; its transaction is known, and named, after that.
  if (change.kind === 'refund' && state === 'refunded')
    return change.txHash !== undefined && refundTxHash === undefined
  return true
}

function fillIn(next: PaymentRecord, change: PaymentChange, timestamp: string): void {
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
    // Another payment may buy what this one did not.
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

/** When somebody has to look at it again. */
export function dueOf(record: PaymentRecord, now: number): number | undefined {
  switch (record.state) {
    case 'open':
      return record.expiresAt
    case 'claimed':
    case 'settling':
      return now + settlingMaxMs
    case 'unknown':
      return now + (unknownAgainMs[Math.min(record.attempts, unknownAgainMs.length) - 1] ?? 1000)
    case 'settled':
      return now + unspentMaxMs
    case 'spent':
      return now + Math.min(Math.max(now - millisOf(record.createdAt), spentAgainMs), spentAgainMaxMs)
    case 'failed':
      // What waits for it may have been made a moment after it was known.
      return record.taskId === undefined ? undefined : now + settlingMaxMs
    default:
      return undefined
  }
}
