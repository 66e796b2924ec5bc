import { capturePage, capturePageHeaders } from '@parley/engine/payments/capture/capture-page'
import { isRefusalCode } from '@parley/engine/payments/capture/refusal-text'
import { sessionView, unknownSession } from '@parley/engine/payments/capture/session-view'
import type { Payments } from '@parley/engine/payments/payments'
import { PaymentRefused } from '@parley/engine/payments/x402/payment-refused'
import { type PresentedPayment, readPayload } from '@parley/engine/payments/x402/presented-payment'
import { newWalletKey, signPayment } from '@parley/engine/payments/x402/wallet'
import { requirementsOf } from '@parley/engine/payments/x402/x402'
import type { PaymentRecord } from '@parley/engine/store/payment-store'
import { bodyOf } from '@parley/kit/http/request-body'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Agent } from '../../author/agent.ts'
import { baseUrlFor } from './base-url-for.ts'
import { captureFormApi, capturePageApi } from './pay-descriptions.ts'
import { addTestWalletRoute } from './test-wallet-route.ts'

interface PayerRoutes {
  payments: Payments
  agent: Agent
  /** The address at which people reach this agent, as far as it is not known from the request. */
  baseUrl: () => string
}

interface Route {
  Params: { token: string }
  Querystring: Record<string, unknown>
}

const formMaxBytes = 64 * 1024

/** Adds routes for people who pay, in addition to the routes for programs. */
export function addPayerRoutes(app: FastifyInstance, routes: PayerRoutes): void {
  addCapturePageRoutes(app, routes)
  addTestWalletRoute(app, routes)
}

/**
 * The page at `capture_url`, where a person pays (spec/payments.md#capture-page). It is public: the URL is the credential.
 * Everything except browser wallets works without scripts.
 */
function addCapturePageRoutes(app: FastifyInstance, { payments, agent, baseUrl }: PayerRoutes): void {
  app.get<Route>('/pay/:token', { config: { api: capturePageApi } }, async (request, reply) => {
    const { token } = request.params
    const session = await find(payments, token)
    if (session === undefined) return answer(reply.code(404), capturePage(unknownSession))
    const { refused } = request.query
    const offer = await payments.transfers.offerFor(session)
    const view = {
      session,
      transfer: offer?.terms,
      token,
      agent,
      captureUrl: `${baseUrlFor(request, baseUrl())}/pay/${token}`,
      now: Date.now(),
      refused: isRefusalCode(refused) ? refused : undefined,
    }
    return answer(reply, capturePage(sessionView(view)))
  })
  const form = { bodyLimit: formMaxBytes, config: { api: captureFormApi } }
  app.post<Route>('/pay/:token/form', form, async (request, reply) => {
    const { token } = request.params
    const session = await find(payments, token)
    if (session === undefined) return answer(reply.code(404), capturePage(unknownSession))
    const fields = new URLSearchParams(bodyOf(request).toString('utf8'))
    const refused = await pay(payments, session, fields)
    // The URL is relative, because this agent's address has a prefix behind a gateway.
    const back = `../${token}${refused === undefined ? '' : `?refused=${refused}`}`
    return reply.code(303).header('location', back).header('cache-control', 'no-store').send()
  })
}

/** Returns the refusal code if the payment is refused. */
async function pay(
  payments: Payments,
  session: PaymentRecord,
  form: URLSearchParams,
): Promise<string | undefined> {
  try {
    await payments.sessions.paySession(session, await presentedBy(session, form))
    return undefined
  } catch (error) {
    if (error instanceof PaymentRefused) return error.refusal
    if (error instanceof ParleyError && error.status < 500) return 'payment_refused'
    if (error instanceof ParleyError && error.error === 'Unavailable') return 'unavailable'
    throw error
  }
}

/** @throws PaymentRefused */
async function presentedBy(session: PaymentRecord, form: URLSearchParams): Promise<PresentedPayment> {
  if (form.get('with') === 'test-wallet' && session.sandbox) {
    const signed = await signPayment(await newWalletKey(), { requirements: requirementsOf(session.terms) })
    return readPayload(signed)
  }
  const pasted = form.get('payment')?.trim() ?? ''
  if (pasted === '') throw new PaymentRefused('payment_required')
  const bytes = pasted.startsWith('{') ? Buffer.from(pasted, 'utf8') : Buffer.from(pasted, 'base64')
  try {
    return readPayload(parseJson(bytes))
  } catch (error) {
    if (error instanceof PaymentRefused) throw error
    throw new PaymentRefused('invalid_payload')
  }
}

async function find(payments: Payments, token: string): Promise<PaymentRecord | undefined> {
  try {
    return await payments.sessions.findByCapture(token)
  } catch (error) {
    if (error instanceof ParleyError && error.status === 404) return undefined
    throw error
  }
}

function answer(reply: FastifyReply, page: string): FastifyReply {
  return reply.headers(capturePageHeaders).send(page)
}
