import type { Authenticator } from '@parley/kit/auth/authenticate'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'
import { callerOf } from './payment-caller.ts'
import { startApi, statusApi } from './session-descriptions.ts'

/** Adds routes that answer 404 for agents without prices, which load no payment code (spec/payments.md#start-a-session). */
export function addUnpaidRoutes(app: FastifyInstance, authenticator: Authenticator): void {
  app.post('/api/start-payment-session', { config: { api: startApi } }, async (request) => {
    await callerOf(authenticator, request, 'agent:write')
    throw notPaid()
  })
  app.get('/api/payment-status/:sessionId', { config: { api: statusApi } }, async (request) => {
    await callerOf(authenticator, request, 'agent:read')
    throw notPaid()
  })
}

export const notPaid = () =>
  new ParleyError('NotFound', {
    message: 'This agent has no prices',
    data: { reason: 'payments' },
  })
