import type { Payments } from '@parley/engine/payments/payments'
import type { PaymentRecord, PaymentState } from '@parley/engine/store/payment-store'
import { type Authenticator, insufficientScope } from '@parley/kit/auth/authenticate'
import { forwardedBy } from '@parley/kit/auth/caller'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { ledgerAnswer, paymentAnswer } from '@parley/wire/codecs/answers/payments'
import { parseParams } from '@parley/wire/codecs/parley/params'
import {
  decisionIn,
  ledgerOut,
  ledgerPaymentOut,
  refundIn,
  txHashPath,
} from '@parley/wire/codecs/parley/payments'
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

const list: OperationDescription = {
  summary: 'List the payments of a state',
  description: 'For operators and for the OAuth client of the agent.',
  tag: 'payments',
  access: 'agent:admin',
  query: listQuery,
  responses: {
    200: {
      description: 'A page of payments',
      json: ledgerAnswer,
      headers: { 'x-next-cursor': 'The cursor of the next page, if there is one' },
    },
  },
}

const changed = {
  tag: 'payments',
  access: 'agent:admin',
  responses: { 200: { description: 'The payment', json: paymentAnswer } },
  errors: ['Conflict'],
} satisfies Partial<OperationDescription>

const refunded: OperationDescription = {
  ...changed,
  summary: 'Record the refund of a payment',
  body: { json: refundIn, required: false },
}

const decide: OperationDescription = {
  ...changed,
  summary: 'Decide whether an unknown payment was settled',
  body: { json: decisionIn },
}

type ById = { Params: { id: string } }

interface LedgerRoutes {
  payments: Payments
  authenticator: Authenticator
  /** This agent's OAuth clients. */
  ownClients: readonly string[]
}

/**
 * Adds the ledger (spec/payments.md#refunds): payments to refund, and settlements that need a person's decision. It is for
 * operators (`agent:admin`; through the gateway, `agent:ledger`) and for the agent's OAuth client, so that its author
 * needs no operator rights.
 */
export function addLedgerRoutes(
  app: FastifyInstance,
  { payments, authenticator, ownClients }: LedgerRoutes,
): void {
  const allow = (request: FastifyRequest, scope: 'agent:read' | 'agent:write') =>
    callerOf(authenticator, request, (caller) => {
      if (ownClients.includes(caller.id)) return scope
      if (forwardedBy(caller) === undefined) return 'agent:admin'
      // A caller of the gateway needs agent:admin, for which the gateway sends agent:ledger.
      if (!caller.scopes.has('agent:ledger')) throw insufficientScope('agent:admin')
      return 'agent:ledger'
    })
  const { ledger } = payments
  const requirePayment = async (id: string) => {
    const payment = await ledger.store.loadPayment(id)
    if (payment === undefined)
      throw new ParleyError('NotFound', { message: 'Payment not found', data: { reason: 'payment' } })
    return payment
  }
  app.get<{ Querystring: { state?: string } }>(
    '/payments',
    { config: { api: list } },
    async (request, reply) => {
      await allow(request, 'agent:read')
      const page = await ledger.store.listByState(parseParams(listQuery, request.query))
      const byState = await ledger.store.countPaymentsByState()
      const counts = Object.fromEntries(
        Object.entries(byState).map(([state, count]) => [stateOut(state), count]),
      )
      const { state } = request.query
      const mark = deprecatedStates[state ?? '']
      if (mark !== undefined) reply.headers(deprecationHeader([mark]))
      if (page.nextCursor !== undefined) reply.header('x-next-cursor', String(page.nextCursor))
      const shown = page.items.map((payment) => ({ ...payment, state: stateOut(payment.state) }))
      return ledgerOut(shown, counts, page.nextCursor)
    },
  )
  // The refund is recorded before the money is sent back, so that two operators cannot both refund it.
  app.post<ById>(
    '/payments/:id/refunded',
    { config: { audit: 'payment.refund', api: refunded } },
    async (request) => {
      await allow(request, 'agent:write')
      const body = parseParams(refundIn, jsonBody(request))
      const payment = await requirePayment(request.params.id)
      const done = await ledger.change(payment, { kind: 'refund', txHash: body.txHash })
      if ('record' in done) return paymentOut(done.record)
      throw conflict(payment, 'orphaned')
    },
  )
  app.post<ById>(
    '/payments/:id/decide',
    { config: { audit: 'payment.decide', api: decide } },
    async (request) => {
      await allow(request, 'agent:write')
      const body = parseParams(decisionIn, jsonBody(request))
      const payment = await requirePayment(request.params.id)
      if (payment.state !== 'unknown') throw conflict(payment, 'unknown')
      return paymentOut(await payments.decide(payment, decisionOf(payment, body)))
    },
  )
}

/** @throws ParleyError Conflict while the transfer can still succeed, InvalidParams */
function decisionOf(payment: PaymentRecord, { settled, txHash: hash }: z.output<typeof decisionIn>) {
  if (!settled) {
    requireExpired(payment)
    return { state: 'failed', reason: 'operator' } as const
  }
  if (hash === undefined) {
    const issues = [
      { path: txHashPath, message: 'is missing: the hash of the transaction that settled the payment' },
    ]
    throw new ParleyError('InvalidParams', { data: { issues } })
  }
  return { state: 'settled', txHash: hash, payer: payment.payer ?? '' } as const
}

/** Until `validBefore`, anyone who has seen a signed transfer can submit it. */
function requireExpired({ transfer }: PaymentRecord): void {
  const until = Number(transfer?.authorization.validBefore ?? 0)
  if (until < Date.now() / 1000) return
  throw new ParleyError('Conflict', {
    message: `The transfer is valid until ${timestampOf(until * 1_000_000)}, so the payment cannot be marked as failed before then`,
    data: { reason: 'transfer_valid' },
  })
}

const conflict = ({ state }: PaymentRecord, needed: PaymentState) =>
  new ParleyError('Conflict', {
    message: `The payment is ${stateOut(state)}, not ${stateOut(needed)}`,
    data: { reason: stateOut(state) },
  })

const paymentOut = (payment: PaymentRecord) =>
  ledgerPaymentOut({ ...payment, state: stateOut(payment.state) })
