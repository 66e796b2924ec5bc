import type { Log } from '@parley/kit/process/log'
import type { FastifyInstance } from 'fastify'
import type { Services } from '../../methods/method.ts'
import type { OperatorOf } from './operator-access.ts'
import { addOperatorDeliveryRoutes } from './operator-delivery-routes.ts'
import { addOperatorQueueRoute } from './operator-queue-route.ts'
import { addOperatorTaskRoutes } from './operator-task-routes.ts'
import { addOperatorUsageRoutes } from './operator-usage-routes.ts'

/** What the routes for operators use. */
export interface OperatorRoutes {
  services: Services
  operatorOf: OperatorOf
  log: Log
}

/** Adds `/operator/…`, which only the gateway of the agent may call (spec/operator.md#statements). */
export async function addOperatorRoutes(app: FastifyInstance, routes: OperatorRoutes): Promise<void> {
  await app.register(async (scope) => {
    scope.addHook('onSend', async (_request, reply) => {
      // The gateway compares the clocks.
      reply.headers({ 'x-parley-time': new Date().toISOString(), 'cache-control': 'no-store' })
    })
    addGroups(scope, routes)
  })
}

function addGroups(scope: FastifyInstance, routes: OperatorRoutes): void {
  addOperatorTaskRoutes(scope, routes)
  addOperatorQueueRoute(scope, routes)
  addOperatorDeliveryRoutes(scope, routes)
  addOperatorUsageRoutes(scope, routes)
}
