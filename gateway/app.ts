import { randomUUID } from 'node:crypto'
import os from 'node:os'
import { Authenticator } from '@parley/kit/auth/authenticate'
import { addDidRoutes } from '@parley/kit/http/did-routes'
import { addHealthRoute, type FailingChecks } from '@parley/kit/http/health-routes'
import { addMetricsRoute } from '@parley/kit/http/metrics-route'
import type { RequestLimits } from '@parley/kit/http/request-limits'
import { openLimits } from '@parley/kit/http/request-limits'
import { createServer } from '@parley/kit/http/server'
import { AnswerBudget } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import { createMetrics } from '@parley/kit/process/metrics'
import { version } from '@parley/kit/process/version'
import type { FastifyInstance } from 'fastify'
import { type Addresses, resolveAddresses } from './addresses.ts'
import type { GatewayConfig, Settings } from './config.ts'
import { type GatewayState, openGatewayState } from './gateway-state.ts'
import { AwaitedAgents } from './health/awaited-agents.ts'
import { LeaseKeeper } from './health/lease-keeper.ts'
import { WorkSeen } from './health/outlier-detector.ts'
import { probeAgent } from './health/probe.ts'
import { addDiscoveryRoutes } from './http/discovery-routes.ts'
import { refuseWhileDraining } from './http/draining.ts'
import { addIdentityRoute } from './http/identity-route.ts'
import { refuseLoops } from './http/loop-guard.ts'
import { addNegotiationRoutes } from './http/negotiation-routes.ts'
import { addJoiningRoutes } from './http/registration-routes.ts'
import { addRegistryRoutes, type RegistryRoutes } from './http/registry-routes.ts'
import { addRpcRoutes } from './http/rpc-routes.ts'
import { addSignatureRoutes } from './http/signature-routes.ts'
import { isLoopback } from './oauth/client-rules.ts'
import { type OAuth, startOAuth } from './oauth/start-oauth.ts'
import type { OutsideOptions } from './registration/guarded-client.ts'
import type { AgentEntry } from './registry/entry.ts'
import { Registry } from './registry/registry.ts'
import { type RegistrySync, startRegistrySync } from './registry/registry-sync.ts'
import { slugOf } from './registry/slug.ts'
import type { DispatcherFor } from './routing/forwarding/agent-target.ts'
import { proxyAgents } from './routing/forwarding/proxy.ts'
import { ReplicaBalancer } from './routing/forwarding/replica-balancer.ts'
import { TokenReader } from './routing/forwarding/token-reader.ts'
import { createUpstream } from './routing/forwarding/upstream.ts'
import { agentIsDown } from './routing/forwarding/upstream-error.ts'
import { type Routing, startRouting } from './routing/start-routing.ts'
import { findAgentFolders } from './supervisor/agent-folders.ts'
import type { FurtherGateway } from './supervisor/further-gateway.ts'
import { startFurtherGateways } from './supervisor/further-gateways.ts'
import {
  type RunningAgents,
  type SupervisedAgentsOptions,
  superviseAgents,
} from './supervisor/start-supervisor.ts'
import type { SupervisorOptions } from './supervisor/supervisor.ts'
import { startTrust, type Trust } from './trust.ts'

export interface GatewayAppOptions {
  settings: Settings
  /** Folder of the agents to run; absent: none are run. */
  agentsDir?: string
  /** Processes of each of these agents. Default 1; more need STORE_URL=mongodb://… and REDIS_URL. */
  replicas?: number
  /** Gateways on this machine, this one among them. Default 1; more need the same. */
  gateways?: number
  log: Log
  /** For tests. */
  supervisor?: Partial<SupervisorOptions>
  /** For tests. */
  outside?: Partial<OutsideOptions>
}

/** A whole gateway, listening; disposing it stops it, and its agents, in good order. */
export interface GatewayApp extends AsyncDisposable {
  addresses: Addresses
  oauthIssuer: string
  registry: Registry
  /** Of the mandatory checks of `/health`. */
  failingChecks: FailingChecks
  supervisor: RunningAgents | undefined
  /** The other gateways that this one runs. */
  further: readonly FurtherGateway[]
}

/** What the parts of one gateway share. */
interface Parts {
  config: GatewayConfig
  state: GatewayState
  sync: RegistrySync | undefined
  addresses: Addresses
  oauth: OAuth
  registry: Registry
  keeper: LeaseKeeper
  work: WorkSeen
  routing: Routing
  log: Log
  trust: Trust
  limits: RequestLimits | undefined
  answers: AnswerBudget
  draining: () => boolean
}

/** Connections that stay open for longer, after the agents have stopped, are cut. */
const closeLimitMs = 2000

/** The composition root: every part is made here and handed to those who use it. */
export async function startGatewayApp(options: GatewayAppOptions): Promise<GatewayApp> {
  const { settings, log } = options
  const { config, secrets, environment } = settings
  await using stack = new AsyncDisposableStack()
  const { storeUrl, redisUrl } = secrets
  const supervises = options.agentsDir !== undefined
  const state = stack.use(await openGatewayState({ config, storeUrl, supervises }))
  const addresses = await resolveAddresses(config)
  const reserved = await namesOf(options.agentsDir)
  const registry = await openRegistry(options, state, reserved)
  const awaited = new AwaitedAgents({ host: os.hostname(), runs: supervises ? reserved : undefined })
  const isTrusted = (clientId: string) => registry.isTrusted(clientId)
  const publicUrl = addresses.public
  const { outside = {} } = options
  const ownAddresses = [publicUrl, addresses.local]
  const trust = stack.use(
    startTrust({ config, secrets, registry, gatewayUrl: publicUrl, ownAddresses, outside }),
  )
  const { keysOf } = trust
  const oauth = stack.use(
    await startOAuth({
      config,
      secrets,
      store: state.oauth,
      claims: state.claims,
      pingStore: () => state.ping(),
      addresses,
      log,
      isTrusted,
      keysOf,
    }),
  )
  const upstream = stack.adopt(createUpstream(), (agent) => agent.destroy())
  const ways = new ReplicaBalancer()
  const dispatcherFor = (entry: AgentEntry) =>
    ways.dispatcherFor(reachable(entry), entry.origin === 'supervised' ? upstream : trust.upstream)
  const { work, keeper } = watchAgents({ registry, state, dispatcherFor, log }, stack)
  const around = { config, state, registry, work, dispatcherFor, log }
  const routed = { store: state.routing, awaited, gatewayUrl: publicUrl, embeddings: secrets.embeddings }
  const routing = stack.use(await startRouting({ ...around, ...routed }))
  const { lessons } = routing
  const sync = registry.shared
    ? await startRegistrySync({ registry, alsoSync: () => lessons.hear(), redisUrl, log })
    : undefined
  if (sync !== undefined) stack.use(sync)
  const metrics = createMetrics()
  const perMinute = config.rateLimitPerMinute
  const limits = await openLimits({ perMinute, redisUrl, name: 'gateway', log }, stack)
  const app = stack.adopt(createServer({ ...config, publicUrl, log, metrics, limits }), closeServer)
  let draining = false
  const answers = new AnswerBudget(config.answers)
  const parts = { ...around, addresses, oauth, keeper, routing, sync, trust, limits, answers }
  const failingChecks = addRoutes(app, { ...parts, draining: () => draining })
  addMetricsRoute(app, metrics)
  await addAgents(app, parts, dispatcherFor)
  await app.listen({ host: config.host, port: addresses.port })
  const { provider } = oauth
  const house = { config, environment, addresses, provider, registry, upstream, log }
  const { supervisor, further } = await startProcesses(options, house, stack)
  for (const name of supervisor?.leftOut() ?? []) awaited.leaveOut(slugOf(name) ?? name)
  const open = stack.move()
  return {
    addresses,
    oauthIssuer: oauth.issuer,
    registry,
    failingChecks,
    supervisor,
    further,
    [Symbol.asyncDispose]: async () => {
      draining = true
      await open.disposeAsync()
    },
  }
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

function watchAgents(
  {
    registry,
    state,
    dispatcherFor,
    log,
  }: Pick<Parts, 'registry' | 'state' | 'log'> & { dispatcherFor: DispatcherFor },
  stack: AsyncDisposableStack,
) {
  const probe = async (entry: AgentEntry, signal: AbortSignal) =>
    isElsewhere(entry) ? false : probeAgent(entry, signal, { dispatcher: dispatcherFor(entry) })
  const work = new WorkSeen({ registry, log })
  const probed = work.probed.bind(work)
  const keeper = stack.use(new LeaseKeeper({ registry, log, probe, probed, ...leadingOf(state, registry) }))
  // After the keeper: its last figures are written with the keeper's last round.
  stack.use(work)
  return { work, keeper }
}

/** At the same address of this machine another process may listen. */
function isElsewhere({ host, url }: AgentEntry): boolean {
  return host !== undefined && host !== os.hostname() && isLoopback(url)
}

function reachable(entry: AgentEntry): AgentEntry {
  if (isElsewhere(entry)) throw agentIsDown(entry.slug)
  return entry
}

/** The other gateways of this machine, and the agents; they stop before everything else. */
async function startProcesses(
  { agentsDir, replicas = 1, gateways = 1, supervisor: overrides = {} }: GatewayAppOptions,
  house: Omit<SupervisedAgentsOptions, 'agentsDir'>,
  stack: AsyncDisposableStack,
) {
  const further = await startFurtherGateways({ ...house, count: gateways - 1 })
  stack.defer(async () => void (await Promise.all(further.map((gateway) => gateway.stop()))))
  if (agentsDir === undefined) return { further, supervisor: undefined }
  const several = { replicas, portsTaken: gateways - 1, overrides }
  return { further, supervisor: stack.use(await superviseAgents({ agentsDir, ...several, ...house })) }
}

/** The slugs of the agents that the supervisor runs, or would run if they could be started. */
async function namesOf(agentsDir: string | undefined): Promise<Set<string>> {
  const folders = agentsDir === undefined ? [] : await findAgentFolders(agentsDir)
  return new Set(folders.flatMap(({ name }) => slugOf(name) ?? []))
}

/** One of several gateways watches the leases; when it dies, another one does so within two rounds. */
function leadingOf({ claims }: GatewayState, { leaseMs }: Registry) {
  if (claims === undefined) return {}
  const holder = randomUUID()
  return { leads: () => claims.hold('lease-keeper', holder, leaseMs / 3) }
}

/** `/agents/{slug}/…`: requests that name their agent are counted for their callers there. */
async function addAgents(
  app: FastifyInstance,
  { addresses, oauth, registry, routing, answers }: Omit<Parts, 'draining'>,
  dispatcherFor: DispatcherFor,
): Promise<void> {
  const authenticator = new Authenticator(oauth.introspector, () => [])
  await proxyAgents(app, {
    find: (slug) => registry.bySlug(slug),
    dispatcherFor,
    tokens: new TokenReader(authenticator, addresses.public),
    reportSignal: routing.reportSignal,
    routes: routing.namedAgentRoutes(authenticator, answers),
  })
}

/** @returns the checks of `/health` */
function addRoutes(app: FastifyInstance, parts: Parts): FailingChecks {
  const { addresses, oauth, registry, trust, limits, draining } = parts
  const gatewayUrl = addresses.public
  refuseLoops(app, gatewayUrl)
  refuseWhileDraining(app, draining)
  oauth.provider?.mount(app, { checkerIsKnown: (credentials, checks) => limits?.trust(credentials, checks) })
  const { clientKeys } = oauth
  const introspector = limits?.watch(oauth.introspector) ?? oauth.introspector
  const audiences = [gatewayUrl, ...(trust.identity === undefined ? [] : [trust.identity.did])]
  const authenticator = new Authenticator(introspector, () => audiences, clientKeys && { clientKeys })
  addSignatureRoutes(app, {
    registry,
    authenticator: new Authenticator(oauth.introspector, () => audiences, clientKeys && { clientKeys }),
    signatures: parts.state.signatures,
    checks: (credentials) => limits?.trust(credentials.replace(/^bearer +/i, ''), true),
  })
  const { identity, vouch, joining } = trust
  addIdentityRoute(app, identity)
  addDidRoutes(app, trust.resolve)
  addRegistryRoutes(app, { registry, authenticator, gatewayUrl, vouch, told: toldOf(parts) })
  addNegotiationRoutes(app, { ...parts.routing, authenticator })
  addRpcRoutes(app, { router: parts.routing.router(authenticator, parts.answers), log: parts.log })
  addJoiningRoutes(app, { registry, authenticator, gatewayUrl, vouch, joining })
  addDiscoveryRoutes(app, registry, { version, gatewayUrl, did: identity?.did })
  return addHealthRoute(app, healthOptions(parts))
}

/** A heartbeat tells how busy an agent is, and how tasks of this gateway ended there. */
function toldOf({ work, routing, log }: Parts): NonNullable<RegistryRoutes['told']> {
  return (id, before, now, outcomes) => {
    work.told(id, before, now)
    routing.lessons
      .told(id, outcomes)
      .catch((error: unknown) => log.error({ err: error }, 'outcomes of a heartbeat could not be kept'))
  }
}

function healthOptions({ config, state, sync, oauth, registry, keeper, trust, draining }: Parts) {
  return {
    version,
    id: 'gateway',
    did: trust.identity?.did ?? '',
    environment: config.production ? 'production' : 'development',
    storageBackend: state.backend,
    schedulerBackend: 'in-process',
    taskManagerRunning: () => keeper.alive,
    draining,
    mandatory: {
      storage: () => state.ping(),
      scheduler: async () => {
        if (!keeper.alive) throw new Error('the rounds over the leases have stopped')
      },
      bus: async () => sync?.ping(),
      registry: () => registry.ping(),
    },
    shown: { oauth: () => oauth.ping() },
  }
}

/** Answers under way may end; connections that stay open longer are cut. */
async function closeServer(app: FastifyInstance): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), closeLimitMs)
  await app.close()
  clearTimeout(cut)
}
