/**
 * `npm run rolling -- [--pause 4] [--from <commit>]`: the upgrade described in docs/operations.md. Restarts two gateways
 * behind nginx (with `deploy/nginx.conf`; without nginx, behind the balancer of the tests) and two processes of an agent,
 * on MongoDB and Redis, one after the other while clients send. With `--from`, the processes run that commit at first, and
 * the tasks of its clients are read by A2A in the end. Fails if a request fails or an acknowledged task does not complete.
 * Needs redis-server and a MongoDB-compatible server.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Balancer } from '@parley/e2e/harness/balancer'
import { Cluster, type FrontEnd } from '@parley/e2e/harness/cluster'
import { cliIn, root } from '@parley/e2e/harness/parley-process'
import { Clients } from './rolling/clients.ts'
import { Nginx } from './rolling/nginx.ts'
import { startServers } from './testing/agent-processes.ts'
import { checkOut } from './upgrade/check-out.ts'

const { values } = parseArgs({ options: { pause: { type: 'string' }, from: { type: 'string' } } })
const pauseMs = Number(values.pause ?? 4) * 1000

process.exitCode = (await roll(values.from)) ? 0 : 1

async function roll(from: string | undefined): Promise<boolean> {
  await using stack = new AsyncDisposableStack()
  const checkout = from === undefined ? undefined : checkedOut(from, stack)
  const servers = stack.use(await startServers())
  const frontEnd = frontEndOf()
  const cluster = stack.use(
    await Cluster.start({
      gateways: 2,
      checkout,
      frontEnd: (ports, folder) => frontEnd.start(ports, folder),
      settings: {
        STORE_URL: servers.mongodb.newUrl(),
        REDIS_URL: servers.redis.url,
        RATE_LIMIT_PER_MINUTE: '0',
        LOG_LEVEL: 'error',
      },
      agentSettings: { TRUSTED_PROXIES: '127.0.0.1' },
    }),
  )
  const address = `${cluster.url}/agents/calculator`
  const sourceIn = (folder: string) => path.join(folder, 'agents', 'calculator')
  for (const name of ['agent-1', 'agent-2'])
    await cluster.startAgent({
      name,
      source: sourceIn(checkout ?? root),
      settings: { OAUTH_AUDIENCES: address },
    })
  await cluster.admit('calculator')
  const token = await cluster.developmentToken().get()
  const clients = await Clients.start(`${address}/`, token, { byA2a: from === undefined })
  await wait(pauseMs)
  for (const agent of cluster.agents) {
    agent.change({ command: cliIn(root), args: ['agent', sourceIn(root)] })
    clients.phase = `restart of ${agent.name}`
    await agent.restart()
    clients.phase = `after the restart of ${agent.name}`
    await wait(pauseMs)
  }
  for (const [index, gateway] of cluster.gateways.entries()) {
    // A stopping gateway completes the requests that it has accepted. The front end must not send it new ones.
    await frontEnd.drain(index)
    gateway.change({ command: cliIn(root), args: ['gateway'] })
    clients.phase = `restart of ${gateway.name}`
    await gateway.restart()
    clients.phase = `after the restart of ${gateway.name}`
    await frontEnd.drain(undefined)
    await wait(pauseMs)
  }
  const { sent, failed, failures, completed, readable } = await clients.end()
  console.log(
    `${sent} requests during four restarts: ${failed} failed; ${completed.of} tasks acknowledged, ${completed.count} completed, ${readable} readable by A2A`,
  )
  for (const failure of failures) console.log(`  ${failure}`)
  return failed === 0 && completed.count === completed.of && readable === completed.of
}

/** The earlier version, which is removed at the end. */
function checkedOut(commit: string, stack: AsyncDisposableStack): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-rolling-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  return stack.use(checkOut(commit, path.join(folder, 'earlier'))).folder
}

interface RollingFrontEnd {
  start(ports: number[], folder: string): Promise<FrontEnd>
  /** Removes a gateway, which then gets no new requests. Undefined restores all gateways. */
  drain(gateway: number | undefined): Promise<void>
}

function frontEndOf(): RollingFrontEnd {
  let nginx: Nginx | undefined
  if (spawnSync('nginx', ['-v']).status === 0)
    return {
      start: async (ports, folder) => (nginx = await Nginx.start(folder, ports)),
      drain: async (gateway) => nginx?.drain(gateway),
    }
  let balancer: Balancer | undefined
  let all: number[] = []
  return {
    start: async (ports) => {
      balancer = await Balancer.start()
      balancer.targets = all = ports
      return balancer
    },
    drain: async (gateway) => {
      if (balancer !== undefined) balancer.targets = all.filter((_, index) => index !== gateway)
      await wait(1000)
    },
  }
}
