import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { DatabaseRefused } from '@parley/kit/database/errors'
import type { FailingChecks } from '@parley/kit/http/health-routes'
import { type Log, makeLog } from '@parley/kit/process/log'
import { type Running, run } from '@parley/kit/process/run'
import { ExposedSecretFile } from '@parley/kit/process/secret-file'
import { ConfigError } from '@parley/kit/process/settings'
import { version } from '@parley/kit/process/version'
import { startTelemetry } from '@parley/kit/telemetry/telemetry'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { type GatewayConfig, gatewayConfig, type Settings } from './config.ts'
import { UnreadableRecord } from './keys/key-ring.ts'
import { KeysRefused } from './keys/master-key.ts'
import { startupTable } from './startup-table.ts'
import type { Outcome } from './supervisor/supervised-agent.ts'

export interface GatewayOptions {
  /** Whether the gateway also runs the agents in `agentsDir`. */
  supervise: boolean
  /** Defaults to `agents` in the working directory. */
  agentsDir?: string
  /** Processes per agent and gateways on this machine. Both default to 1. More need a shared store and REDIS_URL. */
  replicas?: number
  gateways?: number
  /** Whether to suppress the table of addresses. */
  quiet?: boolean
}

const healthLimitMs = 60_000
const healthPollMs = 250

/** Runs the gateway with the settings in `process.env` until a signal arrives. Resolves with the exit code. */
export async function runGateway(options: GatewayOptions): Promise<number> {
  let log: Log | undefined
  try {
    const settings = gatewayConfig()
    const configured = makeLog({ level: settings.config.logLevel, name: 'gateway' })
    log = configured
    return await run(() => start(options, settings, configured), { log })
  } catch (error) {
    const sentence = sentenceOf(error)
    if (sentence === undefined)
      (log ?? makeLog({ level: 'info', name: 'gateway' })).fatal({ err: error }, 'cannot start')
    else process.stderr.write(`parley: ${sentence}\n`)
    return 1
  }
}

async function start(options: GatewayOptions, settings: Settings, log: Log): Promise<Running> {
  const agentsDir = path.resolve(options.agentsDir ?? 'agents')
  const { replicas = 1, gateways = 1 } = options
  requireSharedStore(settings, replicas, gateways)
  const several = { agentsDir, replicas, gateways }
  await using stack = new AsyncDisposableStack()
  stack.use(await startTelemetry(settings.secrets.telemetry, { name: 'gateway', version }))
  const encoder = await openEncoder(settings.config, stack)
  const app = stack.use(await startGatewayApp({ settings, log, encoder, ...(options.supervise && several) }))
  if (options.quiet !== true) void announce(app, settings.config, log)
  return stack.move()
}

/** Opens the sentence encoder. Its model is loaded in a thread when the first agent is registered. */
async function openEncoder({ sentenceEncoder }: GatewayConfig, stack: AsyncDisposableStack) {
  if (!sentenceEncoder) return undefined
  const { SentenceEncoder } = await import('@parley/encoder/sentence-encoder')
  return stack.use(new SentenceEncoder())
}

/** @throws ConfigError if several processes are requested without a shared store and queue */
function requireSharedStore({ secrets }: Settings, replicas: number, gateways: number): void {
  if (replicas === 1 && gateways === 1) return
  const missing = [
    ...(secrets.storeUrl === undefined ? ['STORE_URL=mongodb://host/database'] : []),
    ...(secrets.redisUrl === undefined ? ['REDIS_URL=redis://host'] : []),
  ]
  if (missing.length === 0) return
  throw new ConfigError([
    `Several processes need a shared database and queue: set ${missing.join(' and ')}, or start without --replicas and --gateways.`,
  ])
}

/** Prints the table when every agent has started or failed to start and `/health` returns 200. */
async function announce(app: GatewayApp, config: GatewayConfig, log: Log): Promise<void> {
  const outcomes = (await app.supervisor?.settled()) ?? []
  const failing = await waitUntilHealthy(app.failingChecks)
  const ready = Object.keys(failing).length === 0
  const { addresses, oauthIssuer } = app
  const withToken = config.embeddedOAuth && !config.production
  const agents = outcomes.filter(({ state }) => state === 'ready').length
  if (ready) log.info({ url: addresses.public, agents }, 'gateway is ready')
  else log.warn({ url: addresses.public, agents, failing }, 'gateway is not ready: checks of /health fail')
  process.stdout.write(
    startupTable({
      gatewayUrl: addresses.public,
      ready,
      ownUrl: addresses.local,
      additional: await Promise.all(
        app.additionalGateways.map(async ({ url, settled }) => ({ url, ready: await settled })),
      ),
      oauthIssuer,
      ...(config.console && { console: await signInHint(app, log) }),
      agents: outcomes.map((outcome) => rowOf(outcome, app)),
      isolation: app.supervisor?.isolation,
      ...(withToken && { dataDir: config.dataDir === path.resolve('.parley') ? '' : config.dataDir }),
    }),
  )
}

/** Returns an empty text if people already have accounts, or while the storage does not answer. */
async function signInHint(app: GatewayApp, log: Log): Promise<string> {
  try {
    return (await app.firstSignIn()) ?? ''
  } catch (error) {
    log.error({ err: error }, 'the accounts of the console could not be read')
    return ''
  }
}

function rowOf(outcome: Outcome, app: GatewayApp) {
  const { name } = outcome
  if (outcome.state !== 'ready') return { name, reason: outcome.reason }
  const entry = app.registry.find(outcome.agent.did)
  const { url } = outcome.agent
  return entry === undefined ? { name, reason: 'no longer registered' } : { name, entry, url }
}

/** Resolves once no mandatory check of `/health` fails, or after 60 s with the checks that still fail. */
async function waitUntilHealthy(failingChecks: FailingChecks): Promise<Record<string, string>> {
  const deadline = Date.now() + healthLimitMs
  for (;;) {
    const failing = await failingChecks()
    if (Object.keys(failing).length === 0 || Date.now() >= deadline) return failing
    // An unreferenced timer does not prevent a stopping gateway from exiting.
    await wait(healthPollMs, undefined, { ref: false })
  }
}

/** Returns a message for an error that the operator can fix, or undefined for any other error. */
function sentenceOf(error: unknown): string | undefined {
  const isForOperators =
    error instanceof ConfigError ||
    error instanceof DatabaseRefused ||
    error instanceof ExposedSecretFile ||
    error instanceof KeysRefused ||
    error instanceof UnreadableRecord
  if (isForOperators) return error.message
  if (!isListenError(error)) return undefined
  const { code, port, address } = error
  if (code === 'EADDRINUSE')
    return `Port ${port} is in use: stop the process that uses it, or set another PORT.`
  return `Cannot listen on ${address ?? 'HOST'} (${code}): check HOST and PORT.`
}

function isListenError(error: unknown): error is NodeJS.ErrnoException & { port?: number; address?: string } {
  return error instanceof Error && 'syscall' in error && error.syscall === 'listen'
}
