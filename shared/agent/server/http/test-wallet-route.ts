import { testPurse } from '@parley/engine/payments/facilitators/sandbox'
import type { Payments } from '@parley/engine/payments/payments'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { testWalletAnswer } from '@parley/wire/codecs/answers/payments'
import { ParleyError } from '@parley/wire/errors'
import { toWhole } from '@parley/wire/model/amount'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Agent } from '../../author/agent.ts'
import { allPrices } from '../../author/price-of.ts'

interface Route {
  Params: { address: string }
}

const addressForm = /^0x[\da-fA-F]{40}$/

const api: OperationDescription = {
  summary: 'The test money of an address',
  tag: 'payments',
  access: 'public',
  params: z.object({ address: z.string().regex(addressForm) }),
  responses: { 200: { description: 'The balances', json: testWalletAnswer } },
}

/** Adds the route of an address's test money balance (spec/payments.md#sandbox), which is public as on a chain. */
export function addTestWalletRoute(
  app: FastifyInstance,
  { payments, agent }: { payments: Payments; agent: Agent },
): void {
  const prices = payments.acceptedTerms(allPrices(agent))
  app.get<Route>('/api/test-wallet/:address', { config: { api } }, async (request, reply) => {
    const { address } = request.params
    if (!payments.sandbox || !addressForm.test(address))
      throw new ParleyError('NotFound', { data: { reason: 'test_wallet' } })
    const balances = prices.map(async (price) => {
      const { purse, filledWith } = testPurse(price, address)
      const left = await payments.ledger.store.testPurse(purse, filledWith)
      const { asset, network, decimals, extra } = price
      return { asset, network, decimals, name: extra.name, amount: toWhole(left, decimals) }
    })
    reply.header('cache-control', 'no-store')
    return { address, sandbox: true, balances: await Promise.all(balances) }
  })
}
