import { randomUUID } from 'node:crypto'
import { Authenticator } from '@parley/kit/auth/authenticate'
import type { ProofRules } from '@parley/kit/auth/dpop'
import type { InnerCalls } from '@parley/kit/auth/inner-calls'
import { addDidRoutes } from '@parley/kit/http/did-routes'
import { addHealthRoute, type FailingChecks } from '@parley/kit/http/health-routes'
import { addOpenApiRoute } from '@parley/kit/http/openapi-route'
import type { RequestLimits } from '@parley/kit/http/request-limits'
import { AnswerBudget } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import { version } from '@parley/kit/process/version'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { enforceChangedPolicies } from './access-policies.ts'
import { type Addresses } from './addresses.ts'
import type { AgentCalls } from './calls/agent-calls.ts'
import { InnerRequests } from './calls/inner-requests.ts'
import { RoutedAgentCalls } from './calls/routed-agent-calls.ts'
import { addCatalogRoutes } from './catalog/catalog-routes.ts'
import type { CatalogSources } from './catalog/catalog-sources.ts'
import type { GatewayConfig } from './config.ts'
import { addConsole } from './console/add-console.ts'
import { type GatewayState } from './gateway-state.ts'
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
import { addMcpRoutes } from './mcp/mcp-routes.ts'
import { watchTools } from './mcp/tool-changes.ts'
import { type OAuth } from './oauth/start-oauth.ts'
import { apiPath } from './openai/error-answer.ts'
import { addOpenAiRoutes } from './openai/open-ai-routes.ts'
import { PaymentPrompts } from './openai/payment-prompts.ts'
import { addOperatorRoutes } from './operator/operator-routes.ts'
import type { NotRunningAgent } from './operator/overview/attention.ts'
import type { Records } from './records/start-records.ts'
import { AgentCredentials } from './registration/agent-credentials.ts'
import type { CallerAccess } from './registry/caller-access.ts'
import { Registry } from './registry/registry.ts'
import { type RegistrySync } from './registry/registry-sync.ts'
import type { DispatcherFor } from './routing/forwarding/agent-target.ts'
import { AgentTokens, NamedAgentTokens } from './routing/forwarding/agent-tokens.ts'
import type { NamedAgentOptions } from './routing/forwarding/named-agent.ts'
import { proxyAgents } from './routing/forwarding/proxy.ts'
import { settledRoute } from './routing/placement/route-claims.ts'
import { type Routing } from './routing/start-routing.ts'
import { type Trust } from './trust.ts'

const openApi = { title: 'Parley gateway', description: 'A gateway and registry for many AI agents', version }

/** The parts of the gateway that its routes use. */
export interface Parts {
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
  catalogs: CatalogSources
  inner: InnerCalls
  credentials: AgentCredentials
  access: CallerAccess
  records: Records
  named: NamedAgentOptions
  draining: () => boolean
  /** The agents of the supervisor that do not run. Empty before it has started. */
  notRunning: () => NotRunningAgent[]
  testInterface: AddInterface | undefined
}

/** The calls that name an agent. The agents limit the rate of these requests per caller. */
export function namedAgents(
  parts: Omit<Parts, 'draining' | 'named' | 'notRunning'>,
  dispatcherFor: DispatcherFor,
): NamedAgentOptions {
  const { addresses, oauth, access, routing, answers, tokens } = parts
  const audiences = () => [addresses.public]
  const checks = { proofs: proofRules(parts), inner: parts.inner }
  const authenticator = new Authenticator(oauth.introspector, audiences, checks)
  return {
    find: (slug, request) =>
      access.findNamed(slug, request, () => request.token?.caller ?? authenticator.identify(request)),
    dispatcherFor,
    tokens: new NamedAgentTokens(authenticator, tokens),
    reportSignal: routing.reportSignal,
    grants: routing.grants,
    routes: routing.namedAgentRoutes(answers),
    uses: routing.uses,
    cardOut: (entry, card, codec) => extendedCard(entry, card, codec, cardServer(parts)),
  }
}

/** The statements about the gateway in the cards that it serves. */
function cardServer({ addresses, oauth, trust }: Pick<Parts, 'addresses' | 'oauth' | 'trust'>): CardServer {
  const tokenUrl = oauth.provider && `${oauth.issuer}/token`
  return { gatewayUrl: addresses.public, did: trust.identity?.did, tokenUrl, signCard: trust.signCard }
}

/** Adds `/agents/{slug}/…`. */
export async function addAgents(
  app: FastifyInstance,
  parts: Pick<Parts, 'registry' | 'access' | 'oauth' | 'log' | 'named' | 'records'>,
): Promise<void> {
  app.decorate('forwardedCalls', parts.records.calls)
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
export function addRoutes(app: FastifyInstance, parts: Parts): FailingChecks {
  const { access, addresses, oauth, registry, trust, limits, draining, inner } = parts
  const gatewayUrl = addresses.public
  addLoopGuard(app, gatewayUrl, inner)
  refuseWhileDraining(app, draining, inner)
  const requests = new InnerRequests(app, parts)
  const calls = new RoutedAgentCalls({ requests, gatewayUrl })
  oauth.provider?.mount(app, { onClientChecked: (credentials, checks) => limits?.trust(credentials, checks) })
  const { clientKeys } = oauth
  const introspector = limits?.watch(oauth.introspector) ?? oauth.introspector
  const audiences = [gatewayUrl, ...(trust.identity === undefined ? [] : [trust.identity.did])]
  const checks = { signatures: clientKeys && { clientKeys }, proofs: proofRules(parts), inner }
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
  addStatementKeysRoute(app, oauth)
  if (oauth.delegated !== undefined)
    addStatementExchangeRoute(app, { delegated: oauth.delegated, authenticator, log: parts.log })
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
  invalidateOutdated(parts)
  addPolicyRoutes(app, { registry, authenticator, access })
  addClients(app, { oauth, registry, authenticator })
  addRegistrationRoutes(app, { ...parts, authenticator, gatewayUrl, proofOf, registration })
  addInterfaces(app, { ...parts, calls, authenticator, gatewayUrl })
  addConsole(app, { ...parts, requests, calls, authenticator, gatewayUrl })
  addOperatorRoutes(app, { ...parts, authenticator, gatewayUrl })
  const server = { version, ...cardServer(parts) }
  addDiscoveryRoutes(app, agentsFor, server)
  addCatalogRoutes(app, { ...parts, ...parts.routing, ...server, authenticator, agentsFor, proofOf })
  addOpenApiRoute(app, { ...openApi, address: () => gatewayUrl })
  addProtectedResourceRoutes(app, { gatewayUrl, issuer: oauth.issuer, agentsFor, inner })
  return addHealthRoute(app, healthOptions(parts))
}

/** Introspection responses become invalid with the standing of a client or with a policy. */
function invalidateOutdated({ registry, oauth }: Pick<Parts, 'registry' | 'oauth'>): void {
  registry.listeners.onOutdated(async ({ client, policy }) =>
    oauth.provider?.invalidate([
      ...(client === undefined ? [] : [`c:${client}`]),
      ...(policy === true ? ['policy'] : []),
    ]),
  )
}

/** Adds the routes for the clients and keys of the embedded OAuth server. */
function addClients(
  app: FastifyInstance,
  { oauth, ...routes }: Pick<Parts, 'oauth' | 'registry'> & { authenticator: Authenticator },
): void {
  if (oauth.provider === undefined) return
  const { clients, keys } = oauth.provider
  addClientRoutes(app, { clients, ...routes })
  addClientKeyRoutes(app, { clients, keys, ...routes })
}

/** What the interfaces of the gateway that are not A2A use. */
export interface InterfaceParts
  extends Pick<Parts, 'config' | 'registry' | 'access' | 'routing' | 'oauth' | 'log' | 'state' | 'limits'> {
  calls: AgentCalls
  /** The address of the gateway, below which its interfaces are. */
  gatewayUrl: string
  authenticator: Authenticator
}

export type AddInterface = (app: FastifyInstance, parts: InterfaceParts) => void

function addInterfaces(
  app: FastifyInstance,
  { testInterface, ...parts }: InterfaceParts & Pick<Parts, 'testInterface'>,
): void {
  const { state } = parts
  addOpenAiRoutes(app, {
    ...parts,
    prompts: new PaymentPrompts(state.oauth),
    agentOfContext: async (owner, contextId) => {
      const route = await settledRoute(state.routing, await state.routing.find(owner, 'context', contextId))
      return route && parts.registry.find(route.agent)?.slug
    },
    apiUrl: `${parts.gatewayUrl}${apiPath}`,
  })
  testInterface?.(app, parts)
  const { config, registry, routing } = parts
  const mcp = addMcpRoutes(app, {
    ...parts,
    negotiator: routing.negotiator,
    requiresAudience: config.requireAudience,
    corsOrigins: config.corsOrigins,
    waits: config.mcp,
  })
  watchTools(registry, mcp.toolsChanged)
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
