/**
 * `npm run rolling -- [seconds]`: the upgrade described in docs/operations.md. Restarts two gateways behind nginx (with
 * `deploy/nginx.conf`) and two processes of an agent, on MongoDB and Redis, one after the other while clients send.
 * Fails if a request fails or an acknowledged task does not complete. Needs nginx, redis-server and a MongoDB-compatible
 * server.
 */
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Cluster } from '@parley/e2e/harness/cluster'
import { root } from '@parley/e2e/harness/parley-process'
import { Clients } from './rolling/clients.ts'
import { Nginx } from './rolling/nginx.ts'
import { startServers } from './testing/agent-processes.ts'

const pauseMs = Number(process.argv[2] ?? 4) * 1000

process.exitCode = (await roll()) ? 0 : 1

async function roll(): Promise<boolean> {
  await using servers = await startServers()
  let nginx: Nginx | undefined
  await using cluster = await Cluster.start({
    gateways: 2,
    frontEnd: async (ports, folder) => (nginx = await Nginx.start(folder, ports)),
    settings: {
      STORE_URL: servers.mongodb.newUrl(),
      REDIS_URL: servers.redis.url,
      RATE_LIMIT_PER_MINUTE: '0',
      LOG_LEVEL: 'error',
    },
    agentSettings: { TRUSTED_PROXIES: '127.0.0.1' },
  })
  const address = `${cluster.url}/agents/calculator`
  for (const name of ['agent-1', 'agent-2'])
    await cluster.startAgent({
      name,
      source: path.join(root, 'agents', 'calculator'),
      settings: { OAUTH_AUDIENCES: address },
    })
  await cluster.admit('calculator')
  const clients = await Clients.start(`${address}/`, await cluster.developmentToken().get())
  await wait(pauseMs)
  for (const agent of cluster.agents) {
    await agent.restart()
    await wait(pauseMs)
  }
  for (const [index, gateway] of cluster.gateways.entries()) {
    // A stopping gateway completes the requests that it has accepted. nginx must not send it new ones.
    await nginx?.drain(index)
    await gateway.restart()
    await nginx?.drain(undefined)
    await wait(pauseMs)
  }
  const { sent, failed, failures, completed } = await clients.end()
  console.log(
    `${sent} requests during four restarts: ${failed} failed; ${completed.of} tasks acknowledged, ${completed.count} completed`,
  )
  for (const failure of failures) console.log(`  ${failure}`)
  return failed === 0 && completed.count === completed.of
}
