/**
 * `npm run rolling -- [seconds]`: two gateways behind nginx (with `deploy/nginx.conf`) and two processes of an agent, on
 * MongoDB and Redis, all restarted one after the other while clients send: the upgrade of docs/operations.md. Ends with 1 when
 * a request failed or a task that was acknowledged did not complete. Needs nginx, redis-server and a MongoDB-compatible server.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { admitOwn } from './chaos/admit-own.ts'
import { Balancer } from './rolling/balancer.ts'
import { Clients } from './rolling/clients.ts'
import { freePorts, type Member, startMember } from './rolling/member.ts'
import { startMongodb } from './testing/mongodb-server.ts'
import { startRedis } from './testing/redis-server.ts'

const rest = Number(process.argv[2] ?? 4) * 1000
const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-rolling-'))

try {
  process.exitCode = (await roll()) ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function roll(): Promise<boolean> {
  await using stack = new AsyncDisposableStack()
  const mongodb = stack.use(await startMongodb())
  const redis = stack.use(await startRedis())
  const [front = 0, ...ports] = await freePorts(5)
  const balancer = stack.use(await Balancer.start(folder, front, ports.slice(0, 2)))
  const common = {
    STORE_URL: mongodb.newUrl(),
    REDIS_URL: redis.url,
    RATE_LIMIT_PER_MINUTE: '0',
    LOG_LEVEL: 'error',
  }
  const dataDir = path.join(folder, 'gateway')
  const gatewayEnv = {
    ...common,
    DATA_DIR: dataDir,
    PUBLIC_URL: balancer.url,
    REGISTRY_ALLOWED_HOSTS: '127.0.0.1',
  }
  const gateways: Member[] = []
  for (const port of ports.slice(0, 2))
    gateways.push(stack.use(await startMember(['gateway'], port, gatewayEnv)))
  const initial = readFileSync(path.join(dataDir, 'oauth', 'initial-access-token'), 'utf8').trim()
  const agentEnv = {
    ...common,
    DATA_DIR: path.join(folder, 'agent'),
    GATEWAY_URL: balancer.url,
    OAUTH_INITIAL_TOKEN: initial,
    OAUTH_AUDIENCES: `${balancer.url}/agents/calculator,${balancer.url}`,
    TRUSTED_PROXIES: '127.0.0.1',
  }
  const agents: Member[] = []
  for (const port of ports.slice(2))
    agents.push(stack.use(await startMember(['agent', 'agents/calculator'], port, agentEnv)))
  await admitOwn(balancer.url, 'calculator', dataDir)
  const clients = await Clients.start(`${balancer.url}/agents/calculator/`, dataDir)
  await wait(rest)
  for (const agent of agents) {
    await agent.restart()
    await wait(rest)
  }
  for (const [number, gateway] of gateways.entries()) {
    // Taken out first: what a gateway has accepted it ends, and it accepts nothing new while it stops.
    await balancer.without(number)
    await gateway.restart()
    await balancer.without(undefined)
    await wait(rest)
  }
  const { sent, failed, failures, completed } = await clients.end()
  console.log(
    `${sent} requests during four restarts: ${failed} failed; ${completed.of} tasks acknowledged, ${completed.count} completed`,
  )
  for (const failure of failures) console.log(`  ${failure}`)
  return failed === 0 && completed.count === completed.of
}
