import { randomUUID } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'
import { millisOf, timestamp } from '@parley/wire/model/timestamp'
import type { PaymentRecord, PaymentTerms } from '../../store/payment-store.ts'
import { matchTerms, nonceKeyOf, requireTimely } from '../x402/match-terms.ts'
import { PaymentRefused } from '../x402/payment-refused.ts'
import type { Presented } from '../x402/presented-payment.ts'
import type { Collector } from './collector.ts'
import type { Ledger } from './ledger.ts'
import { dueOf, noTask } from './payment-transitions.ts'

/** What somebody wants to pay for. */
export interface Purchase {
  owner: string
  taskId: string
  /** Unique for what is bought: it is paid once, however many pay for it at the same time. */
  purpose: string
  /** The ways to pay. */
  terms: readonly PaymentTerms[]
}

/** The row is `spent` when the work may be done; `settling` or `unknown` when it is to wait. */
export interface Bought {
  payment: PaymentRecord
  /** Of a request that was thought dead: it may still make what it paid for, so that the payment is good for nothing else. */
  takenOver?: true
}

interface Parts {
  ledger: Ledger
  collector: Collector
  sandbox: boolean
}

/**
 * Pays for it. A failed settlement is refused.
 * @throws PaymentRefused (nothing was taken), ParleyError Conflict (the same is being paid right now), Unavailable
 */
export async function buy(parts: Parts, wanted: Purchase, presented: Presented): Promise<Bought> {
  if (presented.kind === 'session') return spendSession(parts, wanted, presented.sessionId)
  const terms = matchTerms(presented, wanted.terms)
  const claimed = directPayment(wanted, terms, presented.transfer, parts.sandbox)
  if (!(await isNew(parts.ledger, claimed, presented.transfer)))
    return alreadyThere(parts.ledger, wanted, claimed)
  const payment = await parts.collector.collect(claimed)
  if (payment.state === 'failed') throw new PaymentRefused(payment.reason ?? 'settlement_failed')
  return { payment }
}

/** Claims it, where nobody has. @throws PaymentRefused when it was not made in its time; one that was is still good */
async function isNew(
  ledger: Ledger,
  claimed: PaymentRecord,
  transfer: NonNullable<PaymentRecord['transfer']>,
): Promise<boolean> {
  try {
    requireTimely(transfer)
  } catch (late) {
    if ((await ledger.store.findByNonce(claimed.nonceKey ?? '')) === undefined) throw late
    return false
  }
  return (await ledger.add(claimed)) === 'added'
}

/**
 * What was bought was refused before it began: the payment can buy something else of its owner. Not where another attempt at
 * the same has taken it over.
 */
export async function giveBack(ledger: Ledger, { payment, takenOver }: Bought): Promise<void> {
  if (takenOver !== true) await ledger.changeAlone(payment, { kind: 'unspend' })
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
    terms: termsAlone(terms),
    sandbox,
    nonceKey: nonceKeyOf(terms, transfer),
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

/** A price has more fields than a row keeps. */
export function termsAlone({
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

/** A payment that is this old, and what it paid for is not there: whoever took it has died in between. */
const abandonedAfterMs = 5000

/** The transfer, or what it buys, stands in the ledger already: paid and unspent, or on its way, or used. */
async function alreadyThere(ledger: Ledger, wanted: Purchase, claimed: PaymentRecord): Promise<Bought> {
  const { nonceKey = '', id, owner } = claimed
  const same = await ledger.store.findByPurpose(wanted.purpose)
  if (same !== undefined && same.nonceKey !== nonceKey) throw beingPaid()
  const there = same ?? (await ledger.store.findByNonce(nonceKey))
  // It was let go in between: nothing was taken, and the next attempt can.
  if (there === undefined) throw beingPaid()
  if (isSameRequest(there, wanted)) return takeUp(ledger, wanted, there)
  if (same !== undefined) throw beingPaid()
  // Settled, and what it was for was refused: it is still good.
  if (there.owner === owner && there.state === 'settled' && there.sandbox === claimed.sandbox)
    return { payment: await spend(ledger, wanted, there, 'invalid_exact_evm_nonce_already_used') }
  const refusal = new PaymentRefused('invalid_exact_evm_nonce_already_used')
  ledger.refused(owner, id, refusal.refusal)
  throw refusal
}

/** It pays for the same already, or did until its task was thought never to come. */
function isSameRequest(there: PaymentRecord, { owner, taskId, purpose }: Purchase): boolean {
  if (there.owner !== owner || there.taskId !== taskId) return false
  const isListed = there.state === 'orphaned' && there.reason === noTask
  return isListed || (there.state === 'spent' && there.purpose === purpose)
}

/** The same request again, with the same payment: what was bought is still to be made. */
async function takeUp(ledger: Ledger, { purpose }: Purchase, there: PaymentRecord): Promise<Bought> {
  const isSpent = there.state === 'spent'
  if (isSpent && millisOf(there.updatedAt) >= Date.now() - abandonedAfterMs) throw beingPaid()
  const change = isSpent ? ({ kind: 'take-over' } as const) : ({ kind: 'reclaim', purpose } as const)
  const payment = await ledger.changeAlone(there, change)
  if (payment === undefined) throw beingPaid()
  return { payment, takenOver: true }
}

async function spendSession(
  { ledger, sandbox }: Parts,
  wanted: Purchase,
  sessionId: string,
): Promise<Bought> {
  const found = await ledger.store.findPayment(sessionId, wanted.owner)
  if (found?.kind !== 'session') throw new PaymentRefused('payment_session_not_found')
  const isExpired = found.state === 'open' && (found.expiresAt ?? 0) <= Date.now()
  if (isExpired || found.state === 'expired') throw new PaymentRefused('payment_session_expired')
  if (found.state === 'failed') throw new PaymentRefused('payment_session_failed')
  if (['open', 'claimed', 'settling', 'unknown'].includes(found.state))
    throw new PaymentRefused('payment_session_pending')
  // Test money, of the time before real money was taken here.
  if (found.sandbox !== sandbox) throw new PaymentRefused('payment_session_mismatch')
  if (isSameRequest(found, wanted) && wanted.terms.some((asked) => covers(found.terms, asked)))
    return takeUp(ledger, wanted, found)
  if (found.state !== 'settled') throw new PaymentRefused('payment_session_spent')
  return { payment: await spend(ledger, wanted, found, 'payment_session_spent') }
}

/** @throws PaymentRefused when somebody else was first, or it is not enough */
async function spend(
  ledger: Ledger,
  { taskId, purpose, terms }: Purchase,
  payment: PaymentRecord,
  otherwise: 'payment_session_spent' | 'invalid_exact_evm_nonce_already_used',
): Promise<PaymentRecord> {
  if (!terms.some((asked) => covers(payment.terms, asked)))
    throw new PaymentRefused('payment_session_mismatch')
  const done = await ledger.change(payment, { kind: 'spend', taskId, purpose })
  if ('record' in done) return done.record
  if ('conflict' in done) throw beingPaid()
  throw new PaymentRefused(otherwise)
}

function covers(paid: PaymentTerms, asked: PaymentTerms): boolean {
  const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase()
  return (
    paid.network === asked.network &&
    isSame(paid.asset, asked.asset) &&
    isSame(paid.payTo, asked.payTo) &&
    BigInt(paid.atomic) >= BigInt(asked.atomic)
  )
}

function beingPaid(): ParleyError {
  return new ParleyError('Conflict', {
    message: 'This is being paid for right now',
    data: { reason: 'payment_in_progress' },
    headers: { 'retry-after': '2' },
  })
}
