import type { Authenticator } from '@parley/kit/auth/authenticate'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'
import { callerOf } from './payment-caller.ts'

/** Specification, "POST /api/start-payment-session": agents that do not charge return 404. They load nothing of payments. */
export function addUnpaidRoutes(app: FastifyInstance, authenticator: Authenticator): void {
  app.post('/api/start-payment-session', async (request) => {
    await callerOf(authenticator, request, 'agent:write')
    throw notPaid()
  })
  app.get('/api/payment-status/:sessionId', async (request) => {
    await callerOf(authenticator, request, 'agent:read')
    throw notPaid()
  })
}

export const notPaid = () =>
  new ParleyError('NotFound', {
    message: 'Nothing of this agent is to be paid',
    data: { reason: 'payments' },
  })
