import { z } from 'zod'
import { jsonObject, time } from './fields.ts'

/** The answers of the payment routes (spec/payments.md#payment-session). */

export const sessionAnswer = z
  .object({
    session_id: z.string(),
    status: z.enum(['pending', 'completed', 'failed', 'expired']),
    amount: z.string(),
    asset: z.string(),
    network: z.string(),
    pay_to: z.string(),
    decimals: z.int(),
    created_at: time,
    expires_at: time,
    capture_url: z.string(),
    sandbox: z.literal(true).optional(),
    payer: z.string().optional(),
    tx_hash: z.string().optional(),
    completed_at: time.optional(),
    spent: z.boolean().optional(),
    reason: z.string().optional(),
  })
  .meta({ id: 'PaymentSession' })

/** The requirements of x402, in version 1 or 2. */
const requirements = z.looseObject({
  scheme: z.string(),
  network: z.string(),
  asset: z.string(),
  payTo: z.string(),
})

/** The view of a session for its payer. */
export const payableSessionAnswer = z.object({
  session: sessionAnswer,
  resource: jsonObject,
  accepts: z.array(requirements),
})

/** The body of 402 answers, which is the form of x402. */
export const paymentRequiredAnswer = z
  .looseObject({ x402Version: z.int(), error: z.string().optional(), accepts: z.array(requirements) })
  .meta({ id: 'PaymentRequired' })

export const paymentAnswer = z
  .object({
    payment_id: z.string(),
    kind: z.enum(['direct', 'session']),
    state: z.string(),
    reason: z.string().optional(),
    owner: z.string(),
    payer: z.string().optional(),
    amount: z.string(),
    amount_atomic: z.string(),
    decimals: z.int(),
    asset: z.string(),
    asset_name: z.string(),
    network: z.string(),
    pay_to: z.string(),
    tx_hash: z.string().optional(),
    task_id: z.string().optional(),
    sandbox: z.literal(true).optional(),
    attempts: z.int(),
    created_at: time,
    updated_at: time,
    completed_at: time.optional(),
    refund_tx_hash: z.string().optional(),
  })
  .meta({ id: 'Payment' })

export const ledgerAnswer = z.object({
  payments: z.array(paymentAnswer),
  counts: z.record(z.string(), z.int()),
  next_cursor: z.int().optional(),
})

export const testWalletAnswer = z.object({
  address: z.string(),
  sandbox: z.literal(true),
  balances: z.array(
    z.object({
      asset: z.string(),
      network: z.string(),
      decimals: z.int(),
      name: z.string(),
      amount: z.string(),
    }),
  ),
})
