import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { type Servers, startServers } from '../testing/agent-processes.ts'
import { freePort } from '../testing/port.ts'
import { admitOwn } from './admit-own.ts'
import { Balancer } from './balancer.ts'
import { KeptProcess } from './kept-process.ts'

/** The slug of the agent, and its address below that of a gateway. */
export const slug = 'worker'
export const agentPath = `/agents/${slug}`

export interface House extends AsyncDisposable {
  /** The address of all gateways. */
  url: string
  gateways: KeptProcess[]
  agents: KeptProcess[]
  servers: Servers
  /** DATA_DIR of the gateways. */
  dataDir: string
  /** For what belongs to clients. */
  folder: string
  initialToken: string
}

export interface HouseOptions {
  gateways: number
  /** Processes of the one agent. */
  agents: number
  /** Where the processes write to; default: a folder that goes with the house. */
  logs?: string | undefined
}

/**
 * Gateways with the embedded OAuth server behind one address, and processes of an agent, over MongoDB and Redis: each by
 * itself, so that any of them can be killed, and kept running.
 */
export async function startHouse(options: HouseOptions): Promise<House> {
  await using stack = new AsyncDisposableStack()
  const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-chaos-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const logs = options.logs ?? path.join(folder, 'logs')
  mkdirSync(logs, { recursive: true })
  const servers = stack.use(await startServers())
  const balancer = stack.use(await Balancer.start())
  const common = {
    STORE_URL: servers.mongodb.newUrl(),
    REDIS_URL: servers.redis.url,
    // Counted, and never reached.
    RATE_LIMIT_PER_MINUTE: '1000000',
    LOG_LEVEL: 'warn',
  }
  const dataDir = path.join(folder, 'gateway')
  const keep = async (role: KeptProcess['role'], number: number, args: string[], env: Env) => {
    const name = `${role}-${number}`
    const logFile = path.join(logs, `${name}.log`)
    const port = await freePort()
    return stack.use(new KeptProcess({ name, role, args, port, env: { ...common, ...env }, logFile }))
  }
  const gatewayEnv = { DATA_DIR: dataDir, PUBLIC_URL: balancer.url, REGISTRY_ALLOWED_HOSTS: '127.0.0.1' }
  const gateways = await several(options.gateways, (i) => keep('gateway', i, ['gateway'], gatewayEnv))
  balancer.before(gateways)
  const initialToken = readFileSync(path.join(dataDir, 'oauth', 'initial-access-token'), 'utf8').trim()
  const agentEnv = {
    DATA_DIR: path.join(folder, 'agent'),
    GATEWAY_URL: balancer.url,
    OAUTH_INITIAL_TOKEN: initialToken,
    OAUTH_AUDIENCES: `${balancer.url}${agentPath},${balancer.url}`,
    TRUSTED_PROXIES: '127.0.0.1',
    WEBHOOK_ALLOWED_HOSTS: '127.0.0.1',
  }
  const args = ['agent', path.join(import.meta.dirname, slug)]
  const agents = await several(options.agents, (i) => keep('agent', i, args, agentEnv))
  await admitOwn(balancer.url, slug, dataDir)
  await listed(balancer.url, options.agents)
  const open = stack.move()
  const parts = { url: balancer.url, gateways, agents, servers, dataDir, folder, initialToken }
  return { ...parts, [Symbol.asyncDispose]: () => open.disposeAsync() }
}

type Env = Record<string, string>

/** The first one makes the keys that all of them use. */
async function several(count: number, start: (number: number) => Promise<KeptProcess>) {
  const first = await start(1)
  await first.ready()
  const others = await Promise.all(Array.from({ length: count - 1 }, (_, i) => start(i + 2)))
  await Promise.all(others.map((one) => one.ready()))
  return [first, ...others]
}

/** Resolves when the registry knows all processes of the agent. */
async function listed(url: string, count: number): Promise<void> {
  const until = Date.now() + 60_000
  for (;;) {
    const answer = await fetch(`${url}/registry/agents/${slug}`)
    const entry = (await answer.json()) as { replicas?: unknown[] }
    if (answer.ok && (entry.replicas?.length ?? 1) >= count) return
    if (Date.now() > until) throw new Error(`the registry does not know ${count} processes of ${slug}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
