import path from 'node:path'
import { DatabaseRefused } from '@parley/kit/database/database-refused'
import { type Log, makeLog } from '@parley/kit/process/log'
import { run } from '@parley/kit/process/run'
import { ExposedSecretFile } from '@parley/kit/process/secret-file'
import { ConfigError } from '@parley/kit/process/settings'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { type GatewayConfig, gatewayConfig, type Settings } from './config.ts'
import { announcement } from './startup-table.ts'
import type { Outcome } from './supervisor/supervised-agent.ts'
import { untilHealthy } from './until-healthy.ts'

export interface GatewayOptions {
  /** Runs the agents of `agentsDir` as well. */
  supervise: boolean
  /** Default `agents` in the working folder. */
  agentsDir?: string
  /** Processes of each agent, and gateways, on this machine. Default 1; more need STORE_URL=mongodb://… and REDIS_URL. */
  replicas?: number
  gateways?: number
  /** Prints no table. */
  quiet?: boolean
}

/** Runs the gateway until a signal comes; resolves with the exit code. What it needs comes from `process.env`. */
export async function runGateway(options: GatewayOptions): Promise<number> {
  let log: Log | undefined
  try {
    const settings = gatewayConfig()
    log = makeLog({ level: settings.config.logLevel, name: 'gateway' })
    return await run(() => start(options, settings, log as Log), { log })
  } catch (error) {
    const sentence = sentenceOf(error)
    if (sentence === undefined)
      (log ?? makeLog({ level: 'info', name: 'gateway' })).fatal({ err: error }, 'cannot start')
    else process.stderr.write(`parley: ${sentence}\n`)
    return 1
  }
}

async function start(options: GatewayOptions, settings: Settings, log: Log): Promise<GatewayApp> {
  const agentsDir = path.resolve(options.agentsDir ?? 'agents')
  const { replicas = 1, gateways = 1 } = options
  requireShared(settings, replicas, gateways)
  const several = { agentsDir, replicas, gateways }
  const app = await startGatewayApp({ settings, log, ...(options.supervise && several) })
  if (options.quiet !== true) void announce(app, settings.config, log)
  return app
}

/** @throws ConfigError */
function requireShared({ secrets }: Settings, replicas: number, gateways: number): void {
  if (replicas === 1 && gateways === 1) return
  const missing = [
    ...(secrets.storeUrl === undefined ? ['STORE_URL=mongodb://host/database'] : []),
    ...(secrets.redisUrl === undefined ? ['REDIS_URL=redis://host'] : []),
  ]
  if (missing.length === 0) return
  throw new ConfigError([
    `Several processes share a database and a line: set ${missing.join(' and ')}, or start without --replicas and --gateways.`,
  ])
}

/** Once every agent's first start has come to something, and `/health` of the gateway answers 200. */
async function announce(app: GatewayApp, config: GatewayConfig, log: Log): Promise<void> {
  const outcomes = (await app.supervisor?.settled()) ?? []
  const failing = await untilHealthy(app.failingChecks)
  const ready = Object.keys(failing).length === 0
  const { addresses, oauthIssuer } = app
  const withToken = config.embeddedOAuth && !config.production
  const agents = outcomes.filter(({ state }) => state === 'ready').length
  if (ready) log.info({ url: addresses.public, agents }, 'gateway is ready')
  else log.warn({ url: addresses.public, agents, failing }, 'gateway is not ready: checks of /health fail')
  process.stdout.write(
    announcement({
      gatewayUrl: addresses.public,
      ready,
      ownUrl: addresses.local,
      further: await Promise.all(
        app.further.map(async ({ url, settled }) => ({ url, ready: await settled })),
      ),
      oauthIssuer,
      agents: outcomes.map((outcome) => lineOf(outcome, app)),
      ...(withToken && { dataDir: config.dataDir === path.resolve('.parley') ? '' : config.dataDir }),
    }),
  )
}

function lineOf(outcome: Outcome, app: GatewayApp) {
  const { name } = outcome
  if (outcome.state !== 'ready') return { name, reason: outcome.reason }
  const entry = app.registry.find(outcome.agent.did)
  const { url } = outcome.agent
  return entry === undefined ? { name, reason: 'left the registry' } : { name, entry, url }
}

/** What the operator can mend, in one sentence; undefined for what is our own fault. */
function sentenceOf(error: unknown): string | undefined {
  const isForOperators =
    error instanceof ConfigError || error instanceof DatabaseRefused || error instanceof ExposedSecretFile
  if (isForOperators) return error.message
  const { code, syscall, port, address } = error as NodeJS.ErrnoException & {
    port?: number
    address?: string
  }
  if (syscall !== 'listen') return undefined
  if (code === 'EADDRINUSE') return `Port ${port} is in use: stop what listens there, or set another PORT.`
  return `Cannot listen on ${address ?? 'HOST'} (${code}): check HOST and PORT.`
}
