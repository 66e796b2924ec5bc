import type { OperationDescription } from '@parley/kit/http/route-description'
import {
  paymentList,
  paymentListQuery,
  usageAnswer,
  usageQuery,
} from '@parley/wire/codecs/answers/operator/usage'
import { parseParams } from '@parley/wire/codecs/parley/params'
import type { FastifyInstance } from 'fastify'
import { authenticateView, type ViewParts } from '../view.ts'
import type { AgentPayments } from './payments.ts'
import type { UsageReport } from './usage-report.ts'

export interface UsageRoutes extends ViewParts {
  usage: UsageReport
  payments: AgentPayments
}

const usageApi: OperationDescription = {
  summary: 'Read tasks, working time, tokens and amounts per day, agent and caller',
  tag: 'operator',
  access: 'agent:read',
  query: usageQuery,
  responses: { 200: { description: 'The usage, the newest day first', json: usageAnswer } },
}
const paymentsApi: OperationDescription = {
  summary: 'List the payments of all agents, newest first',
  tag: 'operator',
  access: 'agent:read',
  query: paymentListQuery,
  responses: {
    200: { description: 'A page of payments, with the number of payments in each state', json: paymentList },
  },
}

/** Adds `/operator/usage` and `/operator/payments` (spec/operator.md#usage). */
export function addUsageRoutes(app: FastifyInstance, routes: UsageRoutes): void {
  app.get('/operator/usage', { config: { api: usageApi } }, async (request, reply) => {
    const view = await authenticateView(routes, request)
    void reply.header('cache-control', 'no-store')
    return routes.usage.read(view, parseParams(usageQuery, request.query))
  })
  app.get('/operator/payments', { config: { api: paymentsApi } }, async (request, reply) => {
    const view = await authenticateView(routes, request)
    void reply.header('cache-control', 'no-store')
    return routes.payments.list(view, parseParams(paymentListQuery, request.query))
  })
}
