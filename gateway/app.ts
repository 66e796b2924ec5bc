import { randomUUID } from 'node:crypto'
import os from 'node:os'
import { InnerCalls } from '@parley/kit/auth/inner-calls'
import { type FailingChecks } from '@parley/kit/http/health-routes'
import { addMetricsRoute } from '@parley/kit/http/metrics'
import { openLimits } from '@parley/kit/http/request-limits'
import { createServer } from '@parley/kit/http/server'
import { AnswerBudget } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import { createMetrics } from '@parley/kit/process/metrics'
import type { TextEmbedder } from '@parley/negotiation/index/request-meaning'
import type { FastifyInstance } from 'fastify'
import { agentClients, callerAccess } from './access-policies.ts'
import { type AddInterface, addAgents, addRoutes, namedAgents, type Parts } from './add-routes.ts'
import { type Addresses, resolveAddresses } from './addresses.ts'
import { openCatalogSources } from './catalog/catalog-sources.ts'
import type { Settings } from './config.ts'
import { sessionCookieOf } from './console/browser-sessions.ts'
import { startExampleProbes } from './example-probes.ts'
import { type GatewayState, openGatewayState } from './gateway-state.ts'
import { AwaitedAgents } from './health/awaited-agents.ts'
import { LeaseKeeper } from './health/lease-keeper.ts'
import { OutlierDetector } from './health/outlier-detector.ts'
import { firstSignIn } from './oauth/accounts/first-account.ts'
import { startOAuth } from './oauth/start-oauth.ts'
import type { TokenExchange } from './oauth/token-exchange.ts'
import { openAiErrorAnswer } from './openai/error-answer.ts'
import { startRecords } from './records/start-records.ts'
import { AgentCredentials } from './registration/agent-credentials.ts'
import type { GuardedClientOptions } from './registration/guarded-client.ts'
import { RelayAddresses } from './registration/relay-addresses.ts'
import { Registry } from './registry/registry.ts'
import { startRegistrySync } from './registry/registry-sync.ts'
import { slugOf } from './registry/slug.ts'
import { AgentTokens } from './routing/forwarding/agent-tokens.ts'
import type { GatewayNames } from './routing/forwarding/caller-token.ts'
import { pathAtAgent } from './routing/forwarding/forward-path.ts'
import { openEmbeddings } from './routing/negotiation/meaning.ts'
import { startRouting } from './routing/start-routing.ts'
import type { AdditionalGateway } from './supervisor/additional-gateway.ts'
import { findAgentFolders } from './supervisor/agent-folders.ts'
import { startGateways } from './supervisor/start-gateways.ts'
import {
  type RunningAgents,
  type SupervisedAgentsOptions,
  superviseAgents,
} from './supervisor/start-supervisor.ts'
import type { SupervisorOptions } from './supervisor/supervisor.ts'
import { startTrust, type Trust } from './trust.ts'
import { openUpstreams, type Upstreams } from './upstreams.ts'

export interface GatewayAppOptions {
  settings: Settings
  /** Folder of the agents to run. If undefined, no agents are run. */
  agentsDir?: string
  /** Number of processes per agent. Defaults to 1. More require STORE_URL=mongodb://… and REDIS_URL. */
  replicas?: number
  /** Number of gateways on this machine. Defaults to 1. More require STORE_URL=mongodb://… and REDIS_URL. */
  gateways?: number
  log: Log
  /** Embeds texts for the ranking, unless EMBEDDINGS_URL is set. Default: agents are ranked by words only. */
  encoder?: TextEmbedder | undefined
  /** Supervisor options that tests override. */
  supervisor?: Partial<SupervisorOptions>
  /** Client options that tests override. */
  guardedClient?: Partial<GuardedClientOptions>
  /** Replaces the token exchange in benchmarks, which measure its cost. */
  tokenExchange?: TokenExchange
  /** Adds an interface that tests and benchmarks call. */
  testInterface?: AddInterface
}

/** A running gateway. Disposing of it stops its agents first and then the gateway itself. */
export interface GatewayApp extends AsyncDisposable {
  addresses: Addresses
  oauthIssuer: string
  registry: Registry
  /**
   * Creates the first account of the console in development. Returns how a person signs in for the first time, undefined if
   * people already have accounts.
   */
  firstSignIn: () => Promise<string | undefined>
  /** Returns the mandatory checks of `/health` that fail. */
  failingChecks: FailingChecks
  supervisor: RunningAgents | undefined
  /** Other gateways on this machine that this one started. */
  additionalGateways: readonly AdditionalGateway[]
}

/** Select the form of errors by the path. */
const errorForms = { dialectPath: pathAtAgent, errorAnswer: openAiErrorAnswer }

/** Connections that are still open after this time are closed. */
const closeGraceMs = 2000

/** The composition root: creates all parts and connects them. */
export async function startGatewayApp(options: GatewayAppOptions): Promise<GatewayApp> {
  const { config, secrets, environment } = options.settings
  // Receives the audit log of this gateway only.
  const log = options.log.child({})
  await using stack = new AsyncDisposableStack()
  const { redisUrl } = secrets
  const { state, registry, metrics, records, awaited } = await openState(options, log, stack)
  const addresses = await resolveAddresses(config)
  const publicUrl = addresses.public
  const agents = agentClients(registry, publicUrl)
  const credentials = new AgentCredentials(state.oauth)
  const trustOptions = { config, secrets, registry, credentials, guardedClient: options.guardedClient }
  const ownAddresses = [publicUrl, addresses.local]
  const trust = stack.use(startTrust({ ...trustOptions, gatewayUrl: publicUrl, ownAddresses }))
  const access = callerAccess({ config, state, registry, gatewayUrl: publicUrl, log })
  const oauth = stack.use(await startOAuth({ config, secrets, state, addresses, log, agents, access, trust }))
  const relays = { store: state.oauth, isShared: registry.shared, host: os.hostname(), log }
  const relayAddress = stack.use(new RelayAddresses(relays))
  const { upstream, dispatcherFor, probe } = openUpstreams(trust, relayAddress, log, stack)
  const { detector, keeper } = watchAgents({ registry, state, probe, log }, stack)
  const tokens = new AgentTokens(options.tokenExchange ?? oauth.tokenExchange, namesOf(publicUrl, trust))
  const shared = { config, state, registry, access, detector, dispatcherFor, tokens, credentials, log }
  const catalogs = openCatalogSources({ config, guardedClient: options.guardedClient, log }, stack)
  const around = { addresses, oauth, keeper, trust, catalogs, records, inner: new InnerCalls() }
  const encoder = await encoderOf(options)
  const routed = { store: state.routing, awaited, gatewayUrl: publicUrl, encoder }
  const routing = stack.use(await startRouting({ ...shared, ...routed, records }))
  const sync = await openSync({ registry, routing, redisUrl, log }, stack)
  const limits = await requestLimits({ config, redisUrl, inner: around.inner, log }, stack)
  const app = openServer({ ...config, publicUrl, log, metrics, limits }, around.inner, stack)
  let draining = false
  let supervisor: RunningAgents | undefined
  const notRunning = () => supervisor?.notRunning() ?? []
  const answers = new AnswerBudget(config.answers)
  const base = { ...shared, ...around, routing, sync, limits, answers, testInterface: options.testInterface }
  const parts = { ...base, named: namedAgents(base, dispatcherFor) }
  const failingChecks = addRoutes(app, { ...parts, notRunning, draining: () => draining })
  addMetricsRoute(app, metrics)
  await addAgents(app, parts)
  await app.listen({ host: config.host, port: addresses.port })
  // Agents verify the gateway's token at its routes.
  stack.use(startExampleProbes(parts, dispatcherFor))
  const provided = { environment, provider: oauth.provider, upstream, relayAddress }
  const started = await startProcesses(options, { ...parts, ...provided }, stack)
  supervisor = started.supervisor
  for (const name of supervisor?.notStarted() ?? []) awaited.leaveOut(slugOf(name) ?? name)
  const open = stack.move()
  return {
    addresses,
    oauthIssuer: oauth.issuer,
    registry,
    firstSignIn: () => firstSignIn(oauth.console.accounts, config),
    failingChecks,
    supervisor,
    additionalGateways: started.additionalGateways,
    [Symbol.asyncDispose]: async () => {
      draining = true
      await open.disposeAsync()
    },
  }
}

/** Follows the other gateways of a shared store. */
async function openSync(
  {
    registry,
    routing,
    redisUrl,
    log,
  }: Pick<Parameters<typeof startRegistrySync>[0], 'registry' | 'redisUrl' | 'log'> & {
    routing: { feedback: { sync: () => Promise<void> } }
  },
  stack: AsyncDisposableStack,
) {
  if (!registry.shared) return undefined
  const alsoSync = () => routing.feedback.sync()
  return stack.use(await startRegistrySync({ registry, alsoSync, redisUrl, log }))
}

function openServer(
  options: Omit<Parameters<typeof createServer>[0], keyof typeof errorForms | 'isInner'>,
  inner: InnerCalls,
  stack: AsyncDisposableStack,
) {
  const isInner = () => inner.current !== undefined
  return stack.adopt(createServer({ ...options, ...errorForms, isInner }), closeServer)
}

/** The endpoint of EMBEDDINGS_URL, otherwise the included encoder. */
async function encoderOf({ settings, encoder }: GatewayAppOptions): Promise<TextEmbedder | undefined> {
  const { embeddings } = settings.secrets
  return embeddings === undefined ? encoder : openEmbeddings(embeddings)
}

/** Opens what the gateway keeps: its state, the registry, and what it records about both. */
async function openState(options: GatewayAppOptions, log: Log, stack: AsyncDisposableStack) {
  const { config, secrets } = options.settings
  const { storeUrl, masterKey } = secrets
  const supervises = options.agentsDir !== undefined
  const state = stack.use(await openGatewayState({ config, storeUrl, supervises, masterKey, log }))
  const reserved = await slugsOf(options.agentsDir)
  const registry = await openRegistry(options, state, reserved)
  const metrics = createMetrics()
  const records = stack.use(startRecords({ config, state, registry, metrics, log }))
  const awaited = new AwaitedAgents({ host: os.hostname(), runs: supervises ? reserved : undefined })
  return { state, registry, metrics, records, awaited }
}

async function openRegistry(
  { settings, agentsDir }: GatewayAppOptions,
  { registry }: GatewayState,
  reserved: ReadonlySet<string>,
) {
  const supervises = agentsDir !== undefined || !registry.shared
  const host = os.hostname()
  return Registry.open(registry, { open: settings.config.registryOpen, reserved, supervises, host })
}

/** A request counts once, without the inner calls that it causes. */
function requestLimits(
  {
    config,
    redisUrl,
    inner,
    log,
  }: Pick<Parts, 'config' | 'inner' | 'log'> & { redisUrl: string | undefined },
  stack: AsyncDisposableStack,
) {
  const isCounted = () => inner.current !== undefined
  return openLimits(
    {
      perMinute: config.rateLimitPerMinute,
      redisUrl,
      name: 'gateway',
      log,
      isCounted,
      sessionOf: sessionCookieOf,
    },
    stack,
  )
}

/** The names by which an audience may name the gateway. */
function namesOf(publicUrl: string, { identity }: Pick<Trust, 'identity'>): GatewayNames {
  return identity === undefined ? [publicUrl] : [publicUrl, identity.did]
}

function watchAgents(
  { registry, state, probe, log }: Pick<Parts, 'registry' | 'state' | 'log'> & Pick<Upstreams, 'probe'>,
  stack: AsyncDisposableStack,
) {
  const detector = new OutlierDetector({ registry, log })
  const probed = detector.probed.bind(detector)
  const keeper = stack.use(
    new LeaseKeeper({ registry, log, probe, probed, ...leaderElection(state, registry) }),
  )
  // The detector is disposed of before the keeper, because the keeper's last write includes the final measurements.
  stack.use(detector)
  return { detector, keeper }
}

/** Starts the additional gateways and the agents, which are later stopped before everything else. */
async function startProcesses(
  { agentsDir, replicas = 1, gateways = 1, supervisor: overrides = {} }: GatewayAppOptions,
  processOptions: Omit<SupervisedAgentsOptions, 'agentsDir'>,
  stack: AsyncDisposableStack,
) {
  const additionalGateways = await startGateways({ ...processOptions, count: gateways - 1 })
  stack.defer(async () => void (await Promise.all(additionalGateways.map((gateway) => gateway.stop()))))
  if (agentsDir === undefined) return { additionalGateways, supervisor: undefined }
  const several = { replicas, portsTaken: gateways - 1, overrides }
  return {
    additionalGateways,
    supervisor: stack.use(await superviseAgents({ agentsDir, ...several, ...processOptions })),
  }
}

/** Returns the slugs of the agents that the supervisor runs, or would run if their settings were complete. */
async function slugsOf(agentsDir: string | undefined): Promise<Set<string>> {
  const folders = agentsDir === undefined ? [] : await findAgentFolders(agentsDir)
  return new Set(folders.flatMap(({ name }) => slugOf(name) ?? []))
}

/** Elects the one of several gateways that watches the leases. If it dies, another takes over within two rounds. */
function leaderElection({ claims }: GatewayState, { leaseMs }: Registry) {
  if (claims === undefined) return {}
  const holder = randomUUID()
  return { leads: () => claims.hold('lease-keeper', holder, leaseMs / 3) }
}

/** Waits for responses in progress and then closes the remaining connections. */
async function closeServer(app: FastifyInstance): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), closeGraceMs)
  await app.close()
  clearTimeout(cut)
}
