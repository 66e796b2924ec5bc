import { randomUUID } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'
import { millisOf, timestamp } from '@parley/wire/model/timestamp'
import type { PaymentRecord, PaymentTerms } from '../../store/payment-store.ts'
import { matchTerms, nonceKeyOf, requireTimely } from '../x402/match-terms.ts'
import { PaymentRefused } from '../x402/payment-refused.ts'
import type { PresentedPayment } from '../x402/presented-payment.ts'
import type { Collector } from './collector.ts'
import type { Ledger } from './ledger.ts'
import { dueOf, noTask } from './payment-transitions.ts'

/** What a payment buys: a task, or the next message of a task. */
export interface Purchase {
  owner: string
  taskId: string
  /**
   * Identifies what is bought. Only one payment per purpose is accepted, even if several requests compete.
   */
  purpose: string
  /** The accepted prices. The caller pays one of them. */
  terms: readonly PaymentTerms[]
}

/** The row is `spent` when the work may start, and `settling` or `unknown` while the work has to wait. */
export interface PurchaseResult {
  payment: PaymentRecord
  /**
   * The payment was taken over from an abandoned request. That request may still create the task, so the
   * payment must not be released for another purchase.
   */
  takenOver?: true
}

interface Parts {
  ledger: Ledger
  collector: Collector
  sandbox: boolean
}

/**
 * Takes the payment for the purchase. Throws a refusal if the settlement fails.
 * @throws PaymentRefused when the payment is refused (no money was taken)
 * @throws ParleyError Conflict when a payment for the same purpose is in progress, Unavailable
 */
export async function buy(
  parts: Parts,
  purchase: Purchase,
  presented: PresentedPayment,
): Promise<PurchaseResult> {
  if (presented.kind === 'session') return spendSession(parts, purchase, presented.sessionId)
  const terms = matchTerms(presented, purchase.terms)
  const claimed = directPayment(purchase, terms, presented.transfer, parts.sandbox)
  if (!(await claimTransfer(parts.ledger, claimed, presented.transfer)))
    return reusePayment(parts.ledger, purchase, claimed)
  const payment = await parts.collector.collect(claimed)
  if (payment.state === 'failed') throw new PaymentRefused(payment.reason ?? 'settlement_failed')
  return { payment }
}

/**
 * Claims the transfer. Returns false if the ledger already holds it, because a repeated transfer is accepted
 * even after its validity period.
 * @throws PaymentRefused when a new transfer is outside its validity period
 */
async function claimTransfer(
  ledger: Ledger,
  claimed: PaymentRecord,
  transfer: NonNullable<PaymentRecord['transfer']>,
): Promise<boolean> {
  try {
    requireTimely(transfer)
  } catch (refusal) {
    if ((await ledger.store.findByNonce(claimed.nonceKey ?? '')) === undefined) throw refusal
    return false
  }
  return (await ledger.add(claimed)) === 'added'
}

/**
 * Releases a payment if its purchase was rejected before the work started, so that its owner can use it for
 * another purchase. Does nothing if the payment was taken over from another request.
 */
export async function releasePurchase(ledger: Ledger, { payment, takenOver }: PurchaseResult): Promise<void> {
  if (takenOver !== true) await ledger.changeIfUnmodified(payment, { kind: 'unspend' })
}

function directPayment(
  { owner, taskId, purpose }: Purchase,
  terms: PaymentTerms,
  transfer: NonNullable<PaymentRecord['transfer']>,
  sandbox: boolean,
): PaymentRecord {
  const at = timestamp()
  const record: PaymentRecord = {
    id: randomUUID(),
    owner,
    kind: 'direct',
    state: 'claimed',
    version: 0,
    terms: storedTerms(terms),
    sandbox,
    nonceKey: nonceKeyOf(terms, transfer.authorization),
    purpose,
    taskId,
    transfer,
    payer: transfer.authorization.from,
    attempts: 0,
    createdAt: at,
    updatedAt: at,
  }
  const dueAt = dueOf(record, Date.now())
  return dueAt === undefined ? record : { ...record, dueAt }
}

/** Selects the fields of a price that a ledger row stores. */
export function storedTerms({
  amount,
  atomic,
  decimals,
  asset,
  network,
  payTo,
  extra,
}: PaymentTerms): PaymentTerms {
  return { amount, atomic, decimals, asset, network, payTo, extra }
}

/** The age after which a spent payment without a task is assumed to come from a process that crashed before creating the task. */
const abandonedAfterMs = 5000

/**
 * Handles a transfer or purpose that the ledger already holds. That payment is in progress, settled and
 * unspent, or used.
 */
async function reusePayment(
  ledger: Ledger,
  purchase: Purchase,
  claimed: PaymentRecord,
): Promise<PurchaseResult> {
  const { nonceKey = '', id, owner } = claimed
  const same = await ledger.store.findByPurpose(purchase.purpose)
  if (same !== undefined && same.nonceKey !== nonceKey) throw paymentInProgress()
  const existing = same ?? (await ledger.store.findByNonce(nonceKey))
  // The payment was released in the meantime. No money was taken, and the caller can retry.
  if (existing === undefined) throw paymentInProgress()
  if (isSameRequest(existing, purchase)) return resume(ledger, purchase, existing)
  if (same !== undefined) throw paymentInProgress()
  // The payment is settled but its purchase was rejected, so it can be used for this one.
  if (existing.owner === owner && existing.state === 'settled' && existing.sandbox === claimed.sandbox)
    return { payment: await spend(ledger, purchase, existing, 'invalid_exact_evm_nonce_already_used') }
  const refusal = new PaymentRefused('invalid_exact_evm_nonce_already_used')
  ledger.refused(owner, id, refusal.refusal)
  throw refusal
}

/**
 * Returns whether the payment already pays for this purchase, or did so until reconciliation orphaned it
 * because of a missing task.
 */
function isSameRequest(existing: PaymentRecord, { owner, taskId, purpose }: Purchase): boolean {
  if (existing.owner !== owner || existing.taskId !== taskId) return false
  const isListed = existing.state === 'orphaned' && existing.reason === noTask
  return isListed || (existing.state === 'spent' && existing.purpose === purpose)
}

/** Repeats a request with the same payment if the purchase has not been made yet. */
async function resume(
  ledger: Ledger,
  { purpose }: Purchase,
  existing: PaymentRecord,
): Promise<PurchaseResult> {
  const isSpent = existing.state === 'spent'
  if (isSpent && millisOf(existing.updatedAt) >= Date.now() - abandonedAfterMs) throw paymentInProgress()
  const change = isSpent ? ({ kind: 'take-over' } as const) : ({ kind: 'reclaim', purpose } as const)
  const payment = await ledger.changeIfUnmodified(existing, change)
  if (payment === undefined) throw paymentInProgress()
  return { payment, takenOver: true }
}

async function spendSession(
  { ledger, sandbox }: Parts,
  purchase: Purchase,
  sessionId: string,
): Promise<PurchaseResult> {
  const found = await ledger.store.findPayment(sessionId, purchase.owner)
  if (found?.kind !== 'session') throw new PaymentRefused('payment_session_not_found')
  const isExpired = found.state === 'open' && (found.expiresAt ?? 0) <= Date.now()
  if (isExpired || found.state === 'expired') throw new PaymentRefused('payment_session_expired')
  if (found.state === 'failed') throw new PaymentRefused('payment_session_failed')
  if (['open', 'claimed', 'settling', 'unknown'].includes(found.state))
    throw new PaymentRefused('payment_session_pending')
  // The test payment was made before this agent accepted real money.
  if (found.sandbox !== sandbox) throw new PaymentRefused('payment_session_mismatch')
  if (isSameRequest(found, purchase) && purchase.terms.some((price) => covers(found.terms, price)))
    return resume(ledger, purchase, found)
  if (found.state !== 'settled') throw new PaymentRefused('payment_session_spent')
  return { payment: await spend(ledger, purchase, found, 'payment_session_spent') }
}

/**
 * Spends the payment.
 * @throws PaymentRefused when another request spent the payment first or the amount is too small
 */
async function spend(
  ledger: Ledger,
  { taskId, purpose, terms }: Purchase,
  payment: PaymentRecord,
  spentRefusal: 'payment_session_spent' | 'invalid_exact_evm_nonce_already_used',
): Promise<PaymentRecord> {
  if (!terms.some((price) => covers(payment.terms, price)))
    throw new PaymentRefused('payment_session_mismatch')
  const done = await ledger.change(payment, { kind: 'spend', taskId, purpose })
  if ('record' in done) return done.record
  if ('conflict' in done) throw paymentInProgress()
  throw new PaymentRefused(spentRefusal)
}

function covers(paid: PaymentTerms, price: PaymentTerms): boolean {
  const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase()
  return (
    paid.network === price.network &&
    isSame(paid.asset, price.asset) &&
    isSame(paid.payTo, price.payTo) &&
    BigInt(paid.atomic) >= BigInt(price.atomic)
  )
}

function paymentInProgress(): ParleyError {
  return new ParleyError('Conflict', {
    message: 'A payment for this is already in progress',
    data: { reason: 'payment_in_progress' },
    headers: { 'retry-after': '2' },
  })
}
