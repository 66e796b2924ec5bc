import { ConnectionError, RpcError } from '@parley/client/internal/rpc-error'
import { oneLine } from '../terminal/printable.ts'
import type { ServerConnection } from './server-connection.ts'

export interface TestBalance {
  agent: string
  /** The amount in whole units. */
  amount: string
  asset: string
  network: string
}

interface Listed {
  slug?: string
}

/** Maximum number of agents queried, each of which costs one request. */
const agentsMax = 200

/** The balance of the address at each agent that accepts test money; undefined if the gateway does not respond. */
export async function balancesOf(
  server: ServerConnection,
  address: string,
): Promise<TestBalance[] | undefined> {
  try {
    const { body } = await server.getJson(`/registry/agents?status=ready&limit=${agentsMax}`)
    const { agents = [] } = body as { agents?: Listed[] }
    const asked = agents.flatMap(({ slug }) =>
      slug !== undefined && /^[a-z0-9-]+$/.test(slug) ? [slug] : [],
    )
    return (await Promise.all(asked.map((slug) => balancesAt(server, slug, address)))).flat()
  } catch (thrown) {
    if (thrown instanceof ConnectionError || thrown instanceof RpcError) return undefined
    throw thrown
  }
}

/** Empty for agents that are free or charge real money, because they have no test wallet route. */
async function balancesAt(server: ServerConnection, agent: string, address: string): Promise<TestBalance[]> {
  try {
    const { body } = await server.getJson(`/agents/${agent}/api/test-wallet/${address}`)
    const { balances = [] } = body as { balances?: Record<string, unknown>[] }
    return balances.map(({ amount, name, network }) => ({
      agent,
      amount: oneLine(String(amount), 100),
      asset: oneLine(String(name), 60),
      network: oneLine(String(network), 60),
    }))
  } catch (thrown) {
    if (thrown instanceof RpcError) return []
    throw thrown
  }
}
