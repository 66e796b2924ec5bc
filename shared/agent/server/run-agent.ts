import { randomUUID } from 'node:crypto'
import path from 'node:path'
import type { CommitListener } from '@parley/engine/tasks/engine'
import { HttpClientKeys } from '@parley/kit/auth/client-keys'
import { clientMetadataUrl, missingClientMetadataUrl } from '@parley/kit/auth/client-metadata-url'
import { ClientToken } from '@parley/kit/auth/client-token'
import { DiscoveryFailed, discover } from '@parley/kit/auth/discovery'
import { HttpIntrospector } from '@parley/kit/auth/introspection'
import { LeasedIntrospector } from '@parley/kit/auth/leased-introspection'
import { acceptingStatements, StatementVerifier } from '@parley/kit/auth/statement'
import { DatabaseRefused } from '@parley/kit/database/errors'
import { agentIdentity, type Identity } from '@parley/kit/did/identity'
import { type AgentConfig, type AgentSecrets, agentConfig } from '@parley/kit/process/config'
import { releaseIdleMemory } from '@parley/kit/process/idle-memory'
import { type Log, makeLog } from '@parley/kit/process/log'
import { type Running, run } from '@parley/kit/process/run'
import { ExposedSecretFile } from '@parley/kit/process/secret-file'
import { ConfigError } from '@parley/kit/process/settings'
import { version } from '@parley/kit/process/version'
import { startTelemetry } from '@parley/kit/telemetry/telemetry'
import { defaultDialect } from '@parley/wire/codecs/dialects'
import type { Heartbeat } from '@parley/wire/model/registry'
import type { Agent } from '../author/agent.ts'
import { loadAgent } from '../author/load-agent.ts'
import { type AgentApp, startAgentApp } from './app.ts'
import type { DelegationOptions } from './delegation/delegation.ts'
import { agentCard } from './methods/agent-card.ts'
import { Membership, type TokenSource } from './registration/membership.ts'
import { ClientRefused, ownClient } from './registration/own-client.ts'
import { isSupervised, reportReady, requestSupplies } from './registration/supervisor-channel.ts'

interface Client {
  clientId: string
  clientSecret: string
}

/** What the loader of an agent may use. */
export interface LoadParts {
  log: Log
  /** The variables of the process. */
  variables: NodeJS.ProcessEnv
}

/** An agent, and what belongs to it while it runs. */
export interface LoadedAgent extends AsyncDisposable {
  agent: Agent
  /** Called when the store is known. The result is called after each commit. */
  open?(parts: { storeUrl: string | undefined; config: AgentConfig }): Promise<CommitListener>
  /** Called when the agent listens. `changed` is to be called when the skills of the agent have changed. */
  watch?(changed: () => void): void
}

const loadFromCode = async (folder: string): Promise<LoadedAgent> => {
  return { agent: await loadAgent(folder), [Symbol.asyncDispose]: async () => {} }
}

/**
 * Runs the agent in a folder, with settings from `process.env`, until a signal arrives. Resolves with the exit code.
 * @param load returns the agent; by default that of `agent.ts`
 */
export async function runAgent(
  folder: string,
  load: (folder: string, parts: LoadParts) => Promise<LoadedAgent> = loadFromCode,
): Promise<number> {
  const name = path.basename(path.resolve(folder))
  try {
    const { config, secrets } = agentConfig(process.env)
    const log = makeLog({ level: config.logLevel, name })
    const loading = async () => load(folder, { log, variables: process.env })
    return await run(async () => start(await loading(), config, secrets, log), { log })
  } catch (error) {
    const reason = reasonFor(error)
    // The supervisor reads the reason from the log line.
    if (reason !== undefined && !isSupervised()) process.stderr.write(`parley: ${reason}\n`)
    else
      makeLog({ level: 'info', name }).fatal(
        reason === undefined ? { err: error } : { reason },
        'agent cannot start',
      )
    return 1
  }
}

/** Describes an error that the operator can correct; undefined for internal errors and errors in the agent's code. */
function reasonFor(error: unknown): string | undefined {
  if (error instanceof ConfigError || error instanceof DatabaseRefused || error instanceof ExposedSecretFile)
    return error.message
  if (error instanceof DiscoveryFailed)
    return `The OAuth server ${error.issuer} cannot be used: ${error.why}. Check GATEWAY_URL, or OAUTH_ISSUER where it is set.`
  if (error instanceof ClientRefused)
    return `${error.message}. Check OAUTH_INITIAL_TOKEN ("npx parley token --initial" prints it where the gateway runs).`
  if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE' && 'port' in error)
    return `Port ${String(error.port)} is in use. Set another one with --port or PORT.`
  return undefined
}

async function start(
  loaded: LoadedAgent,
  config: AgentConfig,
  configured: AgentSecrets,
  log: Log,
): Promise<Running> {
  await using stack = new AsyncDisposableStack()
  stack.use(await startTelemetry(configured.telemetry, { name: loaded.agent.name, version }))
  const { agent } = stack.use(loaded)
  const keyFile = path.join(config.dataDir, 'agent.key.json')
  const identity = await agentIdentity(agent.author, keyFile, config)
  const { did } = identity
  const supplied = isSupervised() ? await requestSupplies(identity) : undefined
  const secrets = { ...configured, storeUrl: supplied?.storeUrl ?? configured.storeUrl }
  const client = supplied?.client ?? (await clientOf(agent.name, identity, config, secrets))
  const provider = stack.use(introspectorOf(config, client))
  const { gatewayUrl } = config
  const statements = gatewayUrl === undefined ? undefined : new StatementVerifier(gatewayUrl)
  const introspector = statements === undefined ? provider : acceptingStatements(provider, statements)
  const clientKeys = clientKeysOf(config, client, log)
  if (clientKeys !== undefined) stack.use(clientKeys)
  else if (agent.signatures === 'required') {
    throw new ConfigError([
      'Set OAUTH_CLIENT_METADATA_URL or OAUTH_ISSUER: this agent requires signatures, and reads the public keys of its callers there.',
    ])
  }
  const keys = clientKeys === undefined ? {} : { clientKeys }
  // The membership opens before the app and so closes after it, so that the gateway entry is removed last.
  const replicaId = replicaIdOf(secrets)
  const membership = membershipOf(identity, { config, secrets, client, log, replicaId })
  if (membership !== undefined) stack.use(membership)
  const reader = tokenSource({ config, secrets, client }, 'agent:read')
  const ownToken = reader && (() => reader.get())
  const { redisUrl, storeUrl, webhookToken } = secrets
  const committed = await loaded.open?.({ storeUrl, config })
  const claims = membership === undefined ? {} : { signatureClaims: membership }
  const given = { agent, identity, config, introspector, log, redisUrl, storeUrl, webhookToken }
  const options = {
    ...given,
    ...keys,
    ...claims,
    delegation: delegationOf(config, client, statements),
    ownToken,
    ...(committed !== undefined && { committed }),
  }
  const app = stack.use(await startAgentApp(options))
  stack.use(releaseIdleMemory(() => app.services.figures.completed + app.services.figures.failed))
  membership?.start({ url: app.baseUrl, figures: () => figuresOf(app) })
  log.info({ url: app.baseUrl, address: app.address, did }, 'agent is ready')
  const report = () => reportReady(app.address, cardOf(agent, did, app), replicaId)
  report()
  loaded.watch?.(report)
  const open = stack.move()
  return {
    [Symbol.asyncDispose]: async () => {
      await membership?.leaveFirst()
      await open.disposeAsync()
    },
  }
}

const cardOf = (agent: Agent, did: string, { baseUrl: url, services }: AgentApp) =>
  defaultDialect.writeCard(agentCard(agent, { did, url, prices: services.payments }))

/** Returns the OAuth client that the settings name or the agent registers. */
async function clientOf(
  name: string,
  identity: Identity,
  config: AgentConfig,
  secrets: AgentSecrets,
): Promise<Client | undefined> {
  const given = configuredClient(config, secrets)
  const { issuer } = config.oauth
  if (given !== undefined || issuer === undefined) return given
  return ownClient({
    issuer,
    endpoint: () => endpointOf(issuer, 'registration_endpoint'),
    initialToken: secrets.initialToken,
    did: identity.did,
    key: identity.key,
    keyHistory: identity.document.keyHistory,
    name,
    file: path.join(config.dataDir, 'oauth-client.json'),
  })
}

function configuredClient({ oauth }: AgentConfig, { oauthClientSecret }: AgentSecrets): Client | undefined {
  if (oauth.clientId === undefined || oauthClientSecret === undefined) return undefined
  return { clientId: oauth.clientId, clientSecret: oauthClientSecret }
}

/** @throws ConfigError when the settings name no server or client for introspection */
export function introspectorOf(
  { oauth }: Pick<AgentConfig, 'oauth'>,
  client: Client | undefined,
): LeasedIntrospector {
  const url = endpoint(oauth.introspectionUrl, oauth.issuer, 'introspection_endpoint')
  if (url === undefined) {
    throw new ConfigError([
      'Set GATEWAY_URL to the address of the gateway that the agent joins, for example http://127.0.0.1:7400. Without a gateway, set OAUTH_ISSUER or OAUTH_INTROSPECTION_URL: the agent checks every token there.',
    ])
  }
  if (client === undefined) {
    throw new ConfigError([
      'Set OAUTH_INITIAL_TOKEN, with which the agent registers its OAuth client ("npx parley token --initial" prints it where the gateway runs), or OAUTH_CLIENT_ID and OAUTH_CLIENT_SECRET.',
    ])
  }
  return new LeasedIntrospector({ http: new HttpIntrospector({ url, ...client }) })
}

function clientKeysOf(
  { oauth }: AgentConfig,
  client: Client | undefined,
  log: Log,
): HttpClientKeys | undefined {
  const url = clientMetadataUrl(oauth, () => log.warn(missingClientMetadataUrl))
  if (url === undefined || client === undefined) return undefined
  return new HttpClientKeys({ url, ...client })
}

/** Undefined without a gateway, or without an OAuth client that could act for callers. */
function delegationOf(
  { gatewayUrl, oauth }: AgentConfig,
  client: Client | undefined,
  statements: Pick<StatementVerifier, 'gateways'> | undefined,
): DelegationOptions | undefined {
  const tokenUrl = endpoint(oauth.tokenUrl, oauth.issuer, 'token_endpoint')
  if (gatewayUrl === undefined || client === undefined || tokenUrl === undefined) return undefined
  // Tokens name the gateway by its public address, which is part of the issuer of its embedded OAuth server.
  const embedded =
    oauth.issuer?.endsWith('/oauth2') === true ? oauth.issuer.slice(0, -'/oauth2'.length) : gatewayUrl
  const resource = async () => (await statements?.gateways())?.[0] ?? embedded
  return { gatewayUrl, tokenUrl, resource, ...client }
}

type Endpoint = 'introspection_endpoint' | 'token_endpoint' | 'registration_endpoint'

async function endpointOf(issuer: string, name: Endpoint): Promise<string> {
  const endpoint = (await discover(issuer))[name]
  if (endpoint === undefined) throw new Error(`the OAuth server names no ${name}`)
  return endpoint
}

/** Returns the configured endpoint, else the one from discovery; undefined if there is neither. */
function endpoint(configured: string | undefined, issuer: string | undefined, name: Endpoint) {
  if (configured !== undefined || issuer === undefined) return configured
  return () => endpointOf(issuer, name)
}

interface MembershipParts {
  config: AgentConfig
  secrets: AgentSecrets
  client: Client | undefined
  log: Log
  replicaId: string | undefined
}

/** Identifies this process to the gateway if it shares the store and the queue with other processes. */
function replicaIdOf({ storeUrl, redisUrl }: AgentSecrets): string | undefined {
  return storeUrl === undefined || redisUrl === undefined ? undefined : randomUUID()
}

/** Undefined without a gateway or without a token for the gateway. */
function membershipOf(identity: Identity, parts: MembershipParts): Membership | undefined {
  const { config, log } = parts
  const { gatewayUrl } = config
  const source = tokenSource(parts, 'agent:write')
  if (gatewayUrl === undefined || source === undefined) return undefined
  const clientIsDid = parts.secrets.gatewayToken === undefined && parts.client?.clientId === identity.did
  return new Membership({
    gatewayUrl,
    signer: identity,
    tokens: source,
    clientIsDid,
    registers: !isSupervised(),
    replicaId: parts.replicaId,
    log,
  })
}

function tokenSource(
  { config, secrets, client }: Pick<MembershipParts, 'config' | 'secrets' | 'client'>,
  scope: 'agent:read' | 'agent:write',
): TokenSource | undefined {
  const given = secrets.gatewayToken
  if (given !== undefined) return { get: async () => given, forget: () => {} }
  const tokenUrl = endpoint(config.oauth.tokenUrl, config.oauth.issuer, 'token_endpoint')
  if (client === undefined || tokenUrl === undefined) return undefined
  return new ClientToken({ tokenUrl, scope, ...client })
}

/** Three heartbeat intervals. */
const outcomesForMs = 30_000

function figuresOf({ services: { scheduler, figures } }: AgentApp): Heartbeat {
  return {
    queueDepth: scheduler.waiting,
    activeTasks: scheduler.active,
    completed: figures.completed,
    failed: figures.failed,
    latencyP50Ms: figures.percentile(0.5),
    latencyP95Ms: figures.percentile(0.95),
    // Outcomes are reported repeatedly, because a heartbeat may be lost. The gateway counts each outcome once.
    outcomes: figures.outcomesSince(Date.now() - outcomesForMs),
  }
}
