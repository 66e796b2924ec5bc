import { randomUUID } from 'node:crypto'
import os from 'node:os'
import { Authenticator } from '@parley/kit/auth/authenticate'
import type { ProofRules } from '@parley/kit/auth/dpop'
import { addDidRoutes } from '@parley/kit/http/did-routes'
import { addHealthRoute, type FailingChecks } from '@parley/kit/http/health-routes'
import { addMetricsRoute } from '@parley/kit/http/metrics'
import { addOpenApiRoute } from '@parley/kit/http/openapi-route'
import type { RequestLimits } from '@parley/kit/http/request-limits'
import { openLimits } from '@parley/kit/http/request-limits'
import { createServer } from '@parley/kit/http/server'
import { AnswerBudget } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import { createMetrics } from '@parley/kit/process/metrics'
import { version } from '@parley/kit/process/version'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { agentClients, callerAccess, enforceChangedPolicies } from './access-policies.ts'
import { type Addresses, resolveAddresses } from './addresses.ts'
import type { GatewayConfig, Settings } from './config.ts'
import { type GatewayState, openGatewayState } from './gateway-state.ts'
import { AwaitedAgents } from './health/awaited-agents.ts'
import { LeaseKeeper } from './health/lease-keeper.ts'
import { OutlierDetector } from './health/outlier-detector.ts'
import { type CardServer, extendedCard } from './http/agent-card.ts'
import { addClientKeyRoutes } from './http/client-key-routes.ts'
import { addClientRoutes } from './http/client-routes.ts'
import { addDiscoveryRoutes } from './http/discovery-routes.ts'
import { refuseWhileDraining } from './http/draining.ts'
import { addIdentityRoute, addStatementKeysRoute } from './http/identity-route.ts'
import { addKeyRoutes } from './http/key-routes.ts'
import { addLoopGuard } from './http/loop-guard.ts'
import { addNegotiationRoutes } from './http/negotiation-routes.ts'
import { addPolicyRoutes } from './http/policy-routes.ts'
import { addProtectedResourceRoutes } from './http/protected-resource-routes.ts'
import { addRegistrationRoutes } from './http/registration-routes.ts'
import { addRegistryRoutes, type RegistryRoutes } from './http/registry-routes.ts'
import { addRpcRoutes } from './http/rpc-routes.ts'
import { addSignatureRoutes } from './http/signature-routes.ts'
import { addStatementExchangeRoute } from './http/statement-exchange-route.ts'
import { type OAuth, startOAuth } from './oauth/start-oauth.ts'
import type { TokenExchange } from './oauth/token-exchange.ts'
import { AgentCredentials } from './registration/agent-credentials.ts'
import type { GuardedClientOptions } from './registration/guarded-client.ts'
import { RelayAddresses } from './registration/relay-addresses.ts'
import type { CallerAccess } from './registry/caller-access.ts'
import { Registry } from './registry/registry.ts'
import { type RegistrySync, startRegistrySync } from './registry/registry-sync.ts'
import { slugOf } from './registry/slug.ts'
import type { DispatcherFor } from './routing/forwarding/agent-target.ts'
import { AgentTokens, NamedAgentTokens } from './routing/forwarding/agent-tokens.ts'
import type { GatewayNames } from './routing/forwarding/caller-token.ts'
import { pathAtAgent } from './routing/forwarding/forward-path.ts'
import type { NamedAgentOptions } from './routing/forwarding/named-agent.ts'
import { proxyAgents } from './routing/forwarding/proxy.ts'
import { type Routing, startRouting } from './routing/start-routing.ts'
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
  /** Supervisor options that tests override. */
  supervisor?: Partial<SupervisorOptions>
  /** Client options that tests override. */
  guardedClient?: Partial<GuardedClientOptions>
  /** Replaces the token exchange in benchmarks, which measure its cost. */
  tokenExchange?: TokenExchange
}

/** A running gateway. Disposing of it stops its agents first and then the gateway itself. */
export interface GatewayApp extends AsyncDisposable {
  addresses: Addresses
  oauthIssuer: string
  registry: Registry
  /** Returns the mandatory checks of `/health` that fail. */
  failingChecks: FailingChecks
  supervisor: RunningAgents | undefined
  /** Other gateways on this machine that this one started. */
  additionalGateways: readonly AdditionalGateway[]
}

/** The parts of the gateway that its routes use. */
interface Parts {
  config: GatewayConfig
  state: GatewayState
  sync: RegistrySync | undefined
  addresses: Addresses
  oauth: OAuth
  registry: Registry
  keeper: LeaseKeeper
  detector: OutlierDetector
  routing: Routing
  tokens: AgentTokens
  log: Log
  trust: Trust
  limits: RequestLimits | undefined
  answers: AnswerBudget
  credentials: AgentCredentials
  access: CallerAccess
  named: NamedAgentOptions
  draining: () => boolean
}

const openApi = { title: 'Parley gateway', description: 'A gateway and registry for many AI agents', version }

/** Connections that are still open after this time are closed. */
const closeGraceMs = 2000

/** The composition root: creates all parts and connects them. */
export async function startGatewayApp(options: GatewayAppOptions): Promise<GatewayApp> {
  const { settings, log } = options
  const { config, secrets, environment } = settings
  await using stack = new AsyncDisposableStack()
  const { storeUrl, redisUrl } = secrets
  const supervises = options.agentsDir !== undefined
  const { masterKey } = secrets
  const state = stack.use(await openGatewayState({ config, storeUrl, supervises, masterKey, log }))
  const addresses = await resolveAddresses(config)
  const reserved = await slugsOf(options.agentsDir)
  const registry = await openRegistry(options, state, reserved)
  const awaited = new AwaitedAgents({ host: os.hostname(), runs: supervises ? reserved : undefined })
  const publicUrl = addresses.public
  const agents = agentClients(registry, publicUrl)
  const trustOptions = { config, secrets, registry, guardedClient: options.guardedClient }
  const ownAddresses = [publicUrl, addresses.local]
  const trust = stack.use(startTrust({ ...trustOptions, gatewayUrl: publicUrl, ownAddresses }))
  const access = callerAccess({ config, state, registry, gatewayUrl: publicUrl, log })
  const oauth = stack.use(await startOAuth({ config, secrets, state, addresses, log, agents, access, trust }))
  const relays = { store: state.oauth, isShared: registry.shared, host: os.hostname(), log }
  const relayAddress = stack.use(new RelayAddresses(relays))
  const { upstream, dispatcherFor, probe } = openUpstreams(trust, relayAddress, log, stack)
  const { detector, keeper } = watchAgents({ registry, state, probe, log }, stack)
  const tokens = new AgentTokens(options.tokenExchange ?? oauth.tokenExchange, namesOf(publicUrl, trust))
  const credentials = new AgentCredentials(state.oauth)
  const shared = { config, state, registry, access, detector, dispatcherFor, tokens, credentials, log }
  const routed = { store: state.routing, awaited, gatewayUrl: publicUrl, embeddings: secrets.embeddings }
  const routing = stack.use(await startRouting({ ...shared, ...routed }))
  const syncOptions = { registry, alsoSync: () => routing.feedback.sync(), redisUrl, log }
  const sync = registry.shared ? stack.use(await startRegistrySync(syncOptions)) : undefined
  const metrics = createMetrics()
  const limitOptions = { perMinute: config.rateLimitPerMinute, redisUrl, name: 'gateway', log }
  const limits = await openLimits(limitOptions, stack)
  const served = { ...config, publicUrl, log, metrics, limits, dialectPath: pathAtAgent }
  const app = stack.adopt(createServer(served), closeServer)
  let draining = false
  const answers = new AnswerBudget(config.answers)
  const base = { ...shared, addresses, oauth, keeper, routing, sync, trust, limits, answers }
  const parts = { ...base, named: namedAgents(base, dispatcherFor) }
  const failingChecks = addRoutes(app, { ...parts, draining: () => draining })
  addMetricsRoute(app, metrics)
  await addAgents(app, parts)
  await app.listen({ host: config.host, port: addresses.port })
  const processOptions = { ...parts, environment, provider: oauth.provider, upstream, relayAddress }
  const { supervisor, additionalGateways } = await startProcesses(options, processOptions, stack)
  for (const name of supervisor?.notStarted() ?? []) awaited.leaveOut(slugOf(name) ?? name)
  const open = stack.move()
  return {
    addresses,
    oauthIssuer: oauth.issuer,
    registry,
    failingChecks,
    supervisor,
    additionalGateways,
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

/** The calls that name an agent. The agents limit the rate of these requests per caller. */
function namedAgents(
  parts: Omit<Parts, 'draining' | 'named'>,
  dispatcherFor: DispatcherFor,
): NamedAgentOptions {
  const { addresses, oauth, access, routing, answers, tokens } = parts
  const audiences = () => [addresses.public]
  const authenticator = new Authenticator(oauth.introspector, audiences, { proofs: proofRules(parts) })
  return {
    find: (slug, request) =>
      access.findNamed(slug, request, () => request.token?.caller ?? authenticator.identify(request)),
    dispatcherFor,
    tokens: new NamedAgentTokens(authenticator, tokens),
    reportSignal: routing.reportSignal,
    grants: routing.grants,
    routes: routing.namedAgentRoutes(answers),
    cardOut: (entry, card, codec) => extendedCard(entry, card, codec, cardServer(parts)),
  }
}

/** The statements about the gateway in the cards that it serves. */
function cardServer({ addresses, oauth, trust }: Pick<Parts, 'addresses' | 'oauth' | 'trust'>): CardServer {
  const tokenUrl = oauth.provider && `${oauth.issuer}/token`
  return { gatewayUrl: addresses.public, did: trust.identity?.did, tokenUrl, signCard: trust.signCard }
}

/** Adds `/agents/{slug}/…`. */
async function addAgents(
  app: FastifyInstance,
  parts: Pick<Parts, 'registry' | 'access' | 'oauth' | 'log' | 'named'>,
): Promise<void> {
  enforceChangedPolicies(app, parts)
  await proxyAgents(app, parts.named)
}

/** All gateways on one database share the accepted DPoP proofs. */
function proofRules({ addresses, state: { signatures } }: Pick<Parts, 'addresses' | 'state'>): ProofRules {
  const takeProof = (proof: Uint8Array, until: number) =>
    signatures.hold(`dpop:${Buffer.from(proof).toString('base64url')}`, randomUUID(), until - Date.now())
  return { accepted: { takeProof }, addresses: () => [addresses.public] }
}

/** @returns a function that returns the failing checks of `/health` */
function addRoutes(app: FastifyInstance, parts: Parts): FailingChecks {
  const { addresses, oauth, registry, trust, limits, draining } = parts
  const gatewayUrl = addresses.public
  addLoopGuard(app, gatewayUrl)
  refuseWhileDraining(app, draining)
  oauth.provider?.mount(app, { onClientChecked: (credentials, checks) => limits?.trust(credentials, checks) })
  const { clientKeys } = oauth
  const introspector = limits?.watch(oauth.introspector) ?? oauth.introspector
  const audiences = [gatewayUrl, ...(trust.identity === undefined ? [] : [trust.identity.did])]
  const checks = { signatures: clientKeys && { clientKeys }, proofs: proofRules(parts) }
  const authenticator = new Authenticator(introspector, () => audiences, checks)
  addSignatureRoutes(app, {
    registry,
    authenticator: new Authenticator(oauth.introspector, () => audiences, checks),
    signatures: parts.state.signatures,
    checks: (credentials) => limits?.trust(credentials.replace(/^bearer +/i, ''), true),
  })
  const { identity, proofOf, registration } = trust
  addKeyRoutes(app, { keys: parts.state.keys, authenticator })
  addIdentityRoute(app, identity)
  addStatementKeysRoute(app, oauth.statementKeys)
  if (oauth.delegated !== undefined)
    addStatementExchangeRoute(app, { delegated: oauth.delegated, authenticator, log: parts.log })
  const { access } = parts
  const agentsFor = async (request: FastifyRequest) =>
    access.agentsFor(await access.callerOf(request, authenticator))
  addDidRoutes(app, async (did, request) => trust.resolve(did, await agentsFor(request)))
  addRegistryRoutes(app, {
    registry,
    authenticator,
    gatewayUrl,
    proofOf,
    access,
    onHeartbeat: heartbeatListener(parts),
  })
  addNegotiationRoutes(app, { ...parts.routing, authenticator, access })
  addRpcRoutes(app, {
    router: parts.routing.router(authenticator, parts.answers, parts.named),
    log: parts.log,
  })
  registry.listeners.onOutdated(async ({ client, policy }) =>
    oauth.provider?.invalidate([
      ...(client === undefined ? [] : [`c:${client}`]),
      ...(policy === true ? ['policy'] : []),
    ]),
  )
  addPolicyRoutes(app, { registry, authenticator, access })
  if (oauth.provider !== undefined) {
    const { clients, keys } = oauth.provider
    addClientRoutes(app, { clients, registry, authenticator })
    addClientKeyRoutes(app, { clients, keys, authenticator })
  }
  addRegistrationRoutes(app, { ...parts, authenticator, gatewayUrl, proofOf, registration })
  addDiscoveryRoutes(app, agentsFor, { version, ...cardServer(parts) })
  addOpenApiRoute(app, { ...openApi, address: () => gatewayUrl })
  addProtectedResourceRoutes(app, { gatewayUrl, issuer: oauth.issuer, agentsFor })
  return addHealthRoute(app, healthOptions(parts))
}

/** Returns a listener for the load and task outcomes that an agent reports with a heartbeat. */
function heartbeatListener({ detector, routing, log }: Parts): NonNullable<RegistryRoutes['onHeartbeat']> {
  return (id, before, now, outcomes) => {
    detector.heartbeat(id, before, now)
    routing.feedback
      .recordHeartbeat(id, outcomes)
      .catch((error: unknown) => log.error({ err: error }, 'outcomes of a heartbeat could not be stored'))
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
        if (!keeper.alive) throw new Error('the lease check has stopped')
      },
      bus: async () => sync?.ping(),
      registry: () => registry.ping(),
    },
    optional: { oauth: () => oauth.ping() },
  }
}

/** Waits for responses in progress and then closes the remaining connections. */
async function closeServer(app: FastifyInstance): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), closeGraceMs)
  await app.close()
  clearTimeout(cut)
}
