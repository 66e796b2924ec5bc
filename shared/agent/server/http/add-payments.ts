import type { Authenticator } from '@parley/kit/auth/authenticate'
import type { FastifyInstance } from 'fastify'
import type { Services } from '../methods/method.ts'
import { addUnpaidRoutes } from './unpaid-routes.ts'

/** Adds the payment routes. The payment code is loaded only if the agent has a price. */
export async function addRoutesOfPayments(
  app: FastifyInstance,
  services: Services,
  authenticator: Authenticator,
  { captureBaseUrl, ownClients }: { captureBaseUrl: string | undefined; ownClients: readonly string[] },
) {
  const { payments } = services
  if (payments === undefined) return addUnpaidRoutes(app, authenticator)
  const [{ addPaymentRoutes }, { addLedgerRoutes }, { addPayerRoutes }] = await Promise.all([
    import('./payment-routes.ts'),
    import('./ledger-routes.ts'),
    import('./capture-page-routes.ts'),
  ])
  addPaymentRoutes(app, { services, authenticator, captureBaseUrl })
  addLedgerRoutes(app, { payments, authenticator, ownClients })
  const baseUrl = () => captureBaseUrl ?? services.baseUrl()
  addPayerRoutes(app, { payments, agent: services.agent, baseUrl })
}
