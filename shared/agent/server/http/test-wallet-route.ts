import { testPurse } from '@parley/engine/payments/facilitators/sandbox'
import type { Payments } from '@parley/engine/payments/payments'
import { ParleyError } from '@parley/wire/errors'
import { toWhole } from '@parley/wire/model/amount'
import type { FastifyInstance } from 'fastify'
import type { Agent } from '../../author/agent.ts'
import { allPrices } from '../../author/price-of.ts'

interface Route {
  Params: { address: string }
}

/** In the sandbox: what an address has left of the test money. Public, as balances on a chain are. */
export function addTestWalletRoute(
  app: FastifyInstance,
  { payments, agent }: { payments: Payments; agent: Agent },
): void {
  const ways = payments.acceptedTerms(allPrices(agent))
  app.get<Route>('/api/test-wallet/:address', async (request, reply) => {
    const { address } = request.params
    if (!payments.sandbox || !/^0x[\da-fA-F]{40}$/.test(address))
      throw new ParleyError('NotFound', { data: { reason: 'test_wallet' } })
    const balances = ways.map(async (way) => {
      const { purse, filledWith } = testPurse(way, address)
      const left = await payments.ledger.store.testPurse(purse, filledWith)
      const { asset, network, decimals, extra } = way
      return { asset, network, decimals, name: extra.name, amount: toWhole(left, decimals) }
    })
    reply.header('cache-control', 'no-store')
    return { address, sandbox: true, balances: await Promise.all(balances) }
  })
}
