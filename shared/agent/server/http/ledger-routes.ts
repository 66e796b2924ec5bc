import type { Payments } from '@parley/engine/payments/payments'
import type { PaymentRecord, PaymentState } from '@parley/engine/store/payment-store'
import type { Authenticator } from '@parley/kit/auth/authenticate'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { wireObject } from '@parley/wire/codecs/parley/spelling'
import { ParleyError } from '@parley/wire/errors'
import { deprecationHeader } from '@parley/wire/model/deprecation'
import { timestampOf } from '@parley/wire/model/timestamp'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { deprecatedStates, stateIn, stateOut } from './ledger-state.ts'
import { callerOf, jsonBody } from './payment-caller.ts'

const listQuery = z.object({
  state: stateIn.default('orphaned'),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  cursor: z.coerce.number().int().min(0).default(0),
})
const txHash = z.string().regex(/^0x[\da-fA-F]{64}$/, 'must be the hash of a transaction')
const refundedBody = wireObject({ txHash: txHash.optional() })
const decisionBody = wireObject({ settled: z.boolean(), txHash: txHash.optional() })

type ById = { Params: { id: string } }

interface LedgerRoutes {
  payments: Payments
  authenticator: Authenticator
  /** Clients of the agent itself. */
  ownClients: readonly string[]
}

/**
 * The ledger: what is owed back, and what only a person can decide. For operators (`agent:admin`), and for the author of an
 * agent that runs elsewhere, who has its OAuth client and no rights of an operator.
 */
export function addLedgerRoutes(
  app: FastifyInstance,
  { payments, authenticator, ownClients }: LedgerRoutes,
): void {
  const allow = (request: FastifyRequest, scope: 'agent:read' | 'agent:write') =>
    callerOf(authenticator, request, ({ id }) => (ownClients.includes(id) ? scope : 'agent:admin'))
  const { ledger } = payments
  const found = async (id: string) => {
    const payment = await ledger.store.loadPayment(id)
    if (payment === undefined)
      throw new ParleyError('NotFound', { message: 'Payment not found', data: { reason: 'payment' } })
    return payment
  }
  app.get('/payments', async (request, reply) => {
    await allow(request, 'agent:read')
    const page = await ledger.store.listByState(parseParams(listQuery, request.query))
    const byState = await ledger.store.countPaymentsByState()
    const counts = Object.fromEntries(
      Object.entries(byState).map(([state, count]) => [stateOut(state as PaymentState), count]),
    )
    const { state } = request.query as { state?: string }
    const mark = deprecatedStates[state ?? '']
    if (mark !== undefined) reply.headers(deprecationHeader([mark]))
    if (page.nextCursor !== undefined) reply.header('x-next-cursor', String(page.nextCursor))
    return { payments: page.items.map(paymentOut), counts, next_cursor: page.nextCursor }
  })
  // Said before the money is sent back: of two operators, one is the first.
  app.post<ById>('/payments/:id/refunded', { config: { audit: 'payment.refund' } }, async (request) => {
    await allow(request, 'agent:write')
    const body = parseParams(refundedBody, jsonBody(request))
    const payment = await found(request.params.id)
    const done = await ledger.change(payment, { kind: 'refund', txHash: body.txHash })
    if ('record' in done) return paymentOut(done.record)
    throw conflict(payment, 'orphaned')
  })
  app.post<ById>('/payments/:id/decide', { config: { audit: 'payment.decide' } }, async (request) => {
    await allow(request, 'agent:write')
    const body = parseParams(decisionBody, jsonBody(request))
    const payment = await found(request.params.id)
    if (payment.state !== 'unknown') throw conflict(payment, 'unknown')
    return paymentOut(await payments.decide(payment, decisionOf(payment, body)))
  })
}

/** @throws ParleyError Conflict for a failure that is not certain yet, InvalidParams */
function decisionOf(payment: PaymentRecord, { settled, txHash: hash }: z.output<typeof decisionBody>) {
  if (!settled) {
    requireExpired(payment)
    return { state: 'failed', reason: 'operator' } as const
  }
  if (hash === undefined) {
    const issues = [{ path: 'tx_hash', message: 'is missing: the transaction that settled it' }]
    throw new ParleyError('InvalidParams', { data: { issues } })
  }
  return { state: 'settled', txHash: hash, payer: payment.payer ?? '' } as const
}

/** What was signed can be carried out until its time is over, by whoever has seen it. */
function requireExpired({ transfer }: PaymentRecord): void {
  const until = Number(transfer?.authorization.validBefore ?? 0)
  if (until < Date.now() / 1000) return
  throw new ParleyError('Conflict', {
    message: `The transfer can still be made until ${timestampOf(until * 1_000_000)}: it has not failed before that`,
    data: { reason: 'transfer_valid' },
  })
}

const conflict = ({ state }: PaymentRecord, needed: PaymentState) =>
  new ParleyError('Conflict', {
    message: `The payment is ${stateOut(state)}, not ${stateOut(needed)}`,
    data: { reason: stateOut(state) },
  })

/** What a refund needs, and no signature. */
function paymentOut(payment: PaymentRecord) {
  const { terms } = payment
  return {
    payment_id: payment.id,
    kind: payment.kind,
    state: stateOut(payment.state),
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
