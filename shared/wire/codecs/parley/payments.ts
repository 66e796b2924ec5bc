import { z } from 'zod'
import type { LedgerPayment, PaymentSession } from '../../model/payment.ts'
import { wireObject } from './spelling.ts'

/** Writes a payment session; absent fields do not appear in the JSON (spec/payments.md#payment-session). */
export function sessionOut(session: PaymentSession) {
  const { status, terms, payer, txHash, completedAt, spent, reason } = session
  return {
    session_id: session.id,
    status,
    amount: terms.amount,
    asset: terms.asset,
    network: terms.network,
    pay_to: terms.payTo,
    decimals: terms.decimals,
    created_at: session.createdAt,
    expires_at: session.expiresAt,
    capture_url: session.captureUrl,
    sandbox: session.sandbox ? true : undefined,
    ...(status === 'completed' && { payer, tx_hash: txHash, completed_at: completedAt, spent }),
    ...(status === 'failed' && { reason }),
  }
}

const sessionAnswer = z.object({
  session_id: z.string().max(128),
  status: z.enum(['pending', 'completed', 'failed', 'expired']),
  amount: z.string().max(200),
  asset: z.string().max(200),
  network: z.string().max(200),
  pay_to: z.string().max(200),
  decimals: z.int(),
  created_at: z.string().max(64),
  expires_at: z.string().max(64),
  capture_url: z.url({ protocol: /^https?$/ }).max(2048),
  sandbox: z.boolean().default(false),
  spent: z.boolean().default(false),
})

/** Reads a payment session in an agent's answer, without its outcome; undefined if the JSON is not a session. */
export function readSession(json: unknown): PaymentSession | undefined {
  const { data } = sessionAnswer.safeParse(json)
  if (data === undefined) return undefined
  const { amount, asset, network, decimals, status, sandbox, spent } = data
  return {
    id: data.session_id,
    status,
    terms: { amount, asset, network, payTo: data.pay_to, decimals },
    createdAt: data.created_at,
    expiresAt: data.expires_at,
    captureUrl: data.capture_url,
    sandbox,
    spent,
  }
}

/** What a payment session pays for. Without a field, it has the agent's price. */
export interface PaymentPurpose {
  skillId?: string | undefined
  /** A paused task that waits for a payment. */
  taskId?: string | undefined
}

/** Writes the body of a request for a session (spec/payments.md#start-a-session). */
export const purposeOut = ({ skillId, taskId }: PaymentPurpose) => ({ skill_id: skillId, task_id: taskId })

/** Writes everything that is needed for a refund, without the payer's signature. */
export function ledgerPaymentOut(payment: LedgerPayment) {
  const { terms } = payment
  return {
    payment_id: payment.id,
    kind: payment.kind,
    state: payment.state,
    reason: payment.reason,
    owner: payment.owner,
    payer: payment.payer,
    amount: terms.amount,
    amount_atomic: terms.atomic,
    decimals: terms.decimals,
    asset: terms.asset,
    asset_name: terms.extra.name,
    network: terms.network,
    pay_to: terms.payTo,
    tx_hash: payment.txHash,
    task_id: payment.taskId,
    sandbox: payment.sandbox ? true : undefined,
    attempts: payment.attempts,
    created_at: payment.createdAt,
    updated_at: payment.updatedAt,
    completed_at: payment.completedAt,
    refund_tx_hash: payment.refundTxHash,
  }
}

/** @param nextCursor absent on the last page */
export function ledgerOut(
  payments: readonly LedgerPayment[],
  counts: Record<string, number>,
  nextCursor: number | undefined,
) {
  return { payments: payments.map(ledgerPaymentOut), counts, next_cursor: nextCursor }
}

const txHash = z.string().regex(/^0x[\da-fA-F]{64}$/, 'must be the hash of a transaction')

/** The body of `POST /payments/{id}/refunded`. */
export const refundIn = wireObject({ txHash: txHash.optional() })
/** The body of `POST /payments/{id}/decide`. */
export const decisionIn = wireObject({ settled: z.boolean(), txHash: txHash.optional() })
export const txHashPath = 'tx_hash'

export function refundOut(hash: string | undefined) {
  return hash === undefined ? {} : { tx_hash: hash }
}

const text = z.string().optional().catch(undefined)
const listed = wireObject({
  /** Added by a client that lists the ledgers of several agents. */
  agent: text,
  paymentId: text,
  state: text,
  amount: text,
  asset: text,
  assetName: text,
  network: text,
  sandbox: z.boolean().optional().catch(undefined),
  payer: text,
  txHash: text,
  taskId: text,
  reason: text,
  refundTxHash: text,
})
const ledger = wireObject({
  payments: z.array(z.looseObject({})).catch([]),
  nextCursor: z.number().optional().catch(undefined),
})

export type ReadPayment = z.output<typeof listed>

/** Reads a ledger row, for clients. Fields of any other type count as absent. */
export function readLedgerPayment(json: unknown): ReadPayment {
  return listed.safeParse(json).data ?? {}
}

export function readLedger(json: unknown): z.output<typeof ledger> {
  return ledger.safeParse(json).data ?? { payments: [] }
}

/** A payment by the ID of a paid session. */
export const paidSessionIn = z.object({ session_id: z.string().min(1).max(100) })

/** Returns the session ID if the body is a payment session. */
export function readSessionId(json: unknown): unknown {
  return typeof json === 'object' && json !== null && 'session_id' in json ? json.session_id : undefined
}
