import { sessionOf } from '@parley/engine/payments/ledger/sessions'
import type { Payments } from '@parley/engine/payments/payments'
import { PaymentRefused, PaymentRequired } from '@parley/engine/payments/x402/payment-refused'
import {
  type PresentedPayment,
  readPayload,
  readPresentedPayment,
} from '@parley/engine/payments/x402/presented-payment'
import { requirementsOf } from '@parley/engine/payments/x402/x402'
import type { PaymentRecord } from '@parley/engine/store/payment-store'
import type { Authenticator } from '@parley/kit/auth/authenticate'
import { withSkillId } from '@parley/wire/codecs/parley/metadata'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { sessionOut } from '@parley/wire/codecs/parley/payments'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { inAdvance, type Price } from '@parley/wire/model/price'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { priceOf } from '../../author/price-of.ts'
import type { Services } from '../methods/method.ts'
import { dueTerms, resourceOf } from '../runner/payment-prompt.ts'
import { baseUrlFor } from './base-url-for.ts'
import { payApi, payableApi } from './pay-descriptions.ts'
import { callerOf, jsonBody } from './payment-caller.ts'
import { startApi, startBody, statusApi, statusQuery } from './session-descriptions.ts'
import { notPaid } from './unpaid-routes.ts'

interface PaymentRoutes {
  services: Services
  authenticator: Authenticator
  /** PAYMENT_CAPTURE_BASE_URL, the address at which people reach this agent; if undefined, the agent's address. */
  captureBaseUrl: string | undefined
}

/** Adds the routes for payment sessions and for the requests of the capture page (spec/payments.md#start-a-session). */
export function addPaymentRoutes(app: FastifyInstance, routes: PaymentRoutes): void {
  const { services, authenticator } = routes
  app.post('/api/start-payment-session', { config: { api: startApi } }, async (request, reply) => {
    const { id: owner } = await callerOf(authenticator, request, 'agent:write')
    const payments = requirePayments(services)
    const purchase = parseParams(startBody, jsonBody(request))
    const price = await requirePrice(services, owner, purchase)
    const session = await payments.sessions.start(owner, price, purchase)
    return reply
      .header('cache-control', 'no-store')
      .send(sessionOut(sessionOf(session, baseOf(routes, request))))
  })
  const status = { config: { api: statusApi } }
  app.get<{ Params: { sessionId: string } }>(
    '/api/payment-status/:sessionId',
    status,
    async (request, reply) => {
      const { id: owner } = await callerOf(authenticator, request, 'agent:read')
      const { sessions } = requirePayments(services)
      const { wait } = parseParams(statusQuery, request.query)
      const id = request.params.sessionId.toLowerCase()
      const waits = wait !== 'false' && wait !== '0'
      const session = waits ? await sessions.wait(id, owner, signalOf(reply)) : await sessions.find(id, owner)
      return reply
        .header('cache-control', 'no-store')
        .send(sessionOut(sessionOf(session, baseOf(routes, request))))
    },
  )
  addCaptureRoutes(app, routes)
}

/** Adds the public routes of a session. Its URL is the credential for viewing and paying it. */
function addCaptureRoutes(app: FastifyInstance, routes: PaymentRoutes): void {
  const { services } = routes
  const viewOf = (request: FastifyRequest, session: PaymentRecord) => ({
    session: sessionOut(sessionOf(session, baseOf(routes, request))),
    resource: resourceOf(services.agent, baseOf(routes, request)),
    accepts: [requirementsOf(session.terms)],
  })
  const payable = { config: { api: payableApi } }
  app.get<{ Params: { token: string } }>('/pay/:token/session', payable, async (request, reply) => {
    const session = await requirePayments(services).sessions.findByCapture(request.params.token)
    return reply.header('cache-control', 'no-store').send(viewOf(request, session))
  })
  app.post<{ Params: { token: string } }>(
    '/pay/:token',
    { config: { api: payApi } },
    async (request, reply) => {
      const payments = requirePayments(services)
      const session = await payments.sessions.findByCapture(request.params.token)
      try {
        const paid = await payments.sessions.paySession(session, presentedIn(request))
        return await reply.header('cache-control', 'no-store').send(viewOf(request, paid))
      } catch (error) {
        if (!(error instanceof PaymentRefused)) throw error
        const resource = resourceOf(services.agent, baseOf(routes, request))
        const { terms, sandbox } = session
        const required = new PaymentRequired({ error: error.refusal, resource, terms: [terms], sandbox })
        return reply
          .code(402)
          .headers(required.headers)
          .header('cache-control', 'no-store')
          .type('application/json; charset=utf-8')
          .send(required.body)
      }
    },
  )
}

/** Returns the payment from a header, or decoded from the body. @throws PaymentRefused */
function presentedIn(request: FastifyRequest): PresentedPayment {
  const inHeader = readPresentedPayment(request.headers, undefined)
  if (inHeader !== undefined) return inHeader
  const body = jsonBody(request)
  if (isObject(body) && Object.keys(body).length === 0) throw new PaymentRefused('payment_required')
  return readPayload(body)
}

/** @throws ParleyError NotFound when no payment is due, SkillNotFound, TaskNotFound, InvalidParams */
async function requirePrice(
  services: Services,
  owner: string,
  choice: z.output<typeof startBody>,
): Promise<Price> {
  const { network, asset } = choice
  const prices = await pricesFor(services, owner, choice)
  if (prices.length === 0) throw notPaid()
  const price = prices.find(
    (one) =>
      (network === undefined || one.network === network) &&
      (asset === undefined || one.asset.toLowerCase() === asset.toLowerCase()),
  )
  if (price !== undefined) return price
  const issues = [
    { path: network === undefined ? 'asset' : 'network', message: 'is not an accepted means of payment' },
  ]
  throw new ParleyError('InvalidParams', { data: { issues } })
}

async function pricesFor(
  services: Services,
  owner: string,
  { skillId, taskId }: z.output<typeof startBody>,
): Promise<Price[]> {
  const { agent, store } = services
  const payments = requirePayments(services)
  if (taskId !== undefined) {
    const task = await store.findTask(taskId, owner)
    if (task === undefined) throw new ParleyError('TaskNotFound', { data: { taskId } })
    return dueTerms({ agent, payments }, task)
  }
  if (skillId !== undefined && !agent.skills.some(({ id }) => id === skillId))
    throw new ParleyError('SkillNotFound')
  const metadata = skillId === undefined ? {} : { metadata: withSkillId(skillId) }
  return payments.acceptedTerms(inAdvance(priceOf(agent, metadata)))
}

function requirePayments({ payments }: Services): Payments {
  if (payments === undefined) throw notPaid()
  return payments
}

const baseOf = ({ services, captureBaseUrl }: PaymentRoutes, request: FastifyRequest) =>
  baseUrlFor(request, captureBaseUrl ?? services.baseUrl())

function signalOf(reply: FastifyReply): AbortSignal {
  const abort = new AbortController()
  if (reply.raw.destroyed) abort.abort()
  else reply.raw.once('close', () => abort.abort())
  return abort.signal
}
