import path from 'node:path'
import { balanced, Cluster } from '@parley/e2e/harness/cluster'
import { type Servers, startServers } from '../testing/agent-processes.ts'

/** The agent's slug, and its path at a gateway. */
export const slug = 'worker'
export const agentPath = `/agents/${slug}`

export interface ChaosCluster extends AsyncDisposable {
  cluster: Cluster
  servers: Servers
}

export interface ChaosClusterOptions {
  gateways: number
  /** Number of processes of the agent. */
  agents: number
  /** Folder for one log file per process. */
  logs?: string | undefined
}

const listedTimeoutMs = 60_000

/** Gateways behind a balancer and processes of one agent, on MongoDB and Redis. Processes that exit are restarted. */
export async function startChaosCluster(options: ChaosClusterOptions): Promise<ChaosCluster> {
  await using stack = new AsyncDisposableStack()
  const servers = stack.use(await startServers())
  const cluster = stack.use(
    await Cluster.start({
      gateways: options.gateways,
      logs: options.logs,
      restarts: true,
      frontEnd: balanced({ healthChecks: true }),
      settings: {
        STORE_URL: servers.mongodb.newUrl(),
        REDIS_URL: servers.redis.url,
        // This limit exercises the counters but is never reached.
        RATE_LIMIT_PER_MINUTE: '1000000',
        LOG_LEVEL: 'warn',
      },
      agentSettings: { TRUSTED_PROXIES: '127.0.0.1', WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' },
    }),
  )
  const settings = { OAUTH_AUDIENCES: `${cluster.url}${agentPath}` }
  const source = path.join(import.meta.dirname, slug)
  const start = (number: number) => cluster.startAgent({ name: `agent-${number}`, source, settings })
  // The first process creates the key that all processes use.
  await start(1)
  await Promise.all(Array.from({ length: options.agents - 1 }, (_, index) => start(index + 2)))
  await cluster.admit(slug)
  await listed(cluster.url, options.agents)
  const resources = stack.move()
  return { cluster, servers, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}

/** Resolves when the registry lists all of the agent's processes. */
async function listed(url: string, count: number): Promise<void> {
  const end = Date.now() + listedTimeoutMs
  for (;;) {
    const answer = await fetch(`${url}/registry/agents/${slug}`)
    const entry = (await answer.json()) as { replicas?: unknown[] }
    if (answer.ok && (entry.replicas?.length ?? 1) >= count) return
    if (Date.now() > end) throw new Error(`the registry does not list ${count} processes of ${slug}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
