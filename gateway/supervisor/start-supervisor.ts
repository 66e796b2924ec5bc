import { existsSync } from 'node:fs'
import { getCompileCacheDir } from 'node:module'
import { isIP } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { agentId } from '@parley/kit/did/did'
import { verifyDocument } from '@parley/kit/did/document'
import { agentFiles, isManifest } from '@parley/kit/process/agent-file'
import { Audit } from '@parley/kit/process/audit'
import { databaseUrl } from '@parley/kit/process/config'
import type { Log } from '@parley/kit/process/log'
import { readListedSkills } from '@parley/wire/codecs/parley/skills'
import type { Agent as UpstreamAgent } from 'undici'
import type { Addresses, RelayAddress } from '../addresses.ts'
import type { GatewayConfig } from '../config.ts'
import { readJson } from '../health/probe.ts'
import type { Isolation } from '../isolation/isolation.ts'
import type { AgentDatabases } from '../isolation/mongodb/agent-databases.ts'
import { RedisUsers } from '../isolation/redis-users.ts'
import type { IdentityProvider } from '../oauth/identity-provider.ts'
import type { AgentCredentials } from '../registration/agent-credentials.ts'
import { readCard } from '../registry/card.ts'
import type { Registry } from '../registry/registry.ts'
import type { Claims } from '../store/claims.ts'
import type { AgentFolder } from './agent-folders.ts'
import { logForwarder } from './process-output.ts'
import { RelaySupervision, relayEntryIn, relayName } from './relay.ts'
import type { ReadyAgent } from './supervised-agent.ts'
import { Supervisor, type SupervisorOptions } from './supervisor.ts'

export interface SupervisedAgentsOptions {
  agentsDir: string
  config: GatewayConfig
  environment: NodeJS.ProcessEnv
  addresses: Addresses
  /** Undefined if OAUTH_ISSUER is set, because the environment then names the agents' clients. */
  provider: IdentityProvider | undefined
  registry: Registry
  state: { claims: Claims | undefined }
  /** The credentials of foreign agents. */
  credentials: AgentCredentials
  /** Set while the relay is running. */
  relayAddress: RelayAddress
  upstream: UpstreamAgent
  log: Log
  /** Number of processes per agent. Defaults to 1. */
  replicas?: number
  /** Number of ports after the gateway's own that additional gateways use. Defaults to 0. */
  portsTaken?: number
  /** Options that tests override. */
  overrides?: Partial<SupervisorOptions>
}

/** The agents that the supervisor runs. */
export type RunningAgents = Pick<Supervisor, 'settled' | 'notStarted' | 'notRunning' | 'pids'> & {
  isolation: Pick<Isolation, 'mode' | 'summary' | 'missing'>
} & AsyncDisposable

interface RegisteredProcess {
  /** Id of the registry entry, or undefined during registration. */
  id: string | undefined
  agent: ReadyAgent
}

/** Starts the supervisor, connected to the registry and the OAuth server. */
export async function superviseAgents(options: SupervisedAgentsOptions): Promise<RunningAgents> {
  const { config, environment, provider, log } = options
  const processes = new Map<string, RegisteredProcess>()
  await using stack = new AsyncDisposableStack()
  const { databases, redisUsers, missing, stopping } = await accessToServers(options, stack)
  const again = () => registerAgain(processes.values(), options)
  const registerTimer = setInterval(again, registerAgainEveryMs).unref()
  let relay: RelaySupervision | undefined
  const supervisor = await Supervisor.start({
    agentsDir: options.agentsDir,
    dataDir: config.dataDir,
    host: config.host,
    firstPort: config.port === 0 ? 0 : config.port + 1 + (options.portsTaken ?? 0),
    replicas: options.replicas ?? 1,
    environment,
    settings: (agent) => settingsOf(agent, options, redisUsers),
    alsoRequired: (agent) => (provider === undefined ? Object.values(clientSettings(agent.name)) : []),
    clientFor: async ({ name, did, publicKey }) => {
      await redisUsers?.grant(name, agentId(did))
      if (provider === undefined) return clientOf(name, environment)
      const scope = 'agent:read agent:write'
      return provider.ensureClient({ clientId: did, clientName: name, scope, publicKey, introspection: true })
    },
    storeFor: databases && (({ name, did }) => databases.urlFor({ name, agentId: agentId(did) })),
    ...processHooks(options, processes, () => relay),
    pass: logForwarder(process.stderr),
    log,
    command: agentCommand,
    isolation: config.isolation,
    needed: neededDestinations(options),
    authorities: authorityFiles(environment['STORE_URL']),
    ...options.overrides,
  })
  relay = stack.use(relayOf(supervisor, options))
  const open = stack.move()
  supervisor.isolation.missing.push(...missing)
  return {
    settled: () => supervisor.settled(),
    notStarted: () => supervisor.notStarted(),
    notRunning: () => supervisor.notRunning(),
    pids: () => supervisor.pids(),
    isolation: supervisor.isolation,
    [Symbol.asyncDispose]: async () => {
      clearInterval(registerTimer)
      stopping.abort(new Error('the gateway stops'))
      await supervisor[Symbol.asyncDispose]()
      await open.disposeAsync()
    },
  }
}

/** Keeps the registry up to date with the processes of the agents. */
function processHooks(
  options: SupervisedAgentsOptions,
  processes: Map<string, RegisteredProcess>,
  relay: () => RelaySupervision | undefined,
): Pick<SupervisorOptions, 'onReady' | 'onGone'> {
  const { registry } = options
  return {
    onReady: async (agent) => {
      if (agent.name === relayName) return relay()?.ready(agent.url)
      const key = `${agent.name} ${agent.number}`
      const now: RegisteredProcess = { id: undefined, agent }
      processes.set(key, now)
      now.id = await register(agent, options)
      // The process ended during its registration, when `onGone` could not yet update the registry.
      if (processes.get(key) !== now) registry.replicaEnded(now.id, agent.replica, 'starting')
    },
    onGone: (name, back, number) => {
      if (name === relayName) return relay()?.gone()
      const known = processes.get(`${name} ${number}`)
      processes.delete(`${name} ${number}`)
      if (known?.id !== undefined)
        registry.replicaEnded(known.id, known.agent.replica, back ? 'starting' : 'unreachable')
    },
  }
}

function relayOf(supervisor: Supervisor, options: SupervisedAgentsOptions): RelaySupervision {
  const { registry, credentials, relayAddress: address, addresses, config, log } = options
  const { environment, provider } = options
  const start = (folder: AgentFolder) => supervisor.start(folder)
  const needed = provider === undefined ? Object.values(clientSettings(relayName)) : []
  return new RelaySupervision({
    registry,
    credentials,
    address,
    gatewayUrl: addresses.public,
    start,
    missing: needed.filter((name) => (environment[name] ?? '') === ''),
    egress: config.isolation.egress,
    updateEgress: (folder) => supervisor.isolation.updateEgress(folder),
    log,
  })
}

/** Gives agents their own databases and users, and returns which protections are missing. */
async function accessToServers(options: SupervisedAgentsOptions, stack: AsyncDisposableStack) {
  const stopping = new AbortController()
  const databases = await agentDatabases(options, stopping.signal)
  if (databases !== undefined) stack.use(databases)
  const { redisUsers, missing } = await redisUsersFor(options)
  if (redisUsers !== undefined) stack.use(redisUsers)
  return { databases, redisUsers, stopping, missing: [...(databases?.missing ?? []), ...missing] }
}

/** Opens the MongoDB databases of the agents. Undefined if the store is embedded. The driver is loaded only if needed. */
async function agentDatabases(
  options: SupervisedAgentsOptions,
  signal: AbortSignal,
): Promise<AgentDatabases | undefined> {
  const { environment, config, log } = options
  const { claims } = options.state
  const url = databaseUrl(environment['STORE_URL'])
  if (url === undefined || claims === undefined) return undefined
  const { AgentDatabases } = await import('../isolation/mongodb/agent-databases.ts')
  return AgentDatabases.open({
    url,
    withUsers: config.isolation.mode !== 'none',
    claims,
    signal,
    log,
  })
}

/** Creates Redis users for the agents, and returns which protections of connections are missing. */
async function redisUsersFor({ environment, config, log }: SupervisedAgentsOptions) {
  const missing: string[] = []
  if (config.production && config.isolation.egress === undefined && config.isolation.mode !== 'none')
    missing.push(
      'limits on the connections of agents without "egress" in settings.json (AGENT_EGRESS is not set)',
    )
  const url = environment['REDIS_URL'] ?? ''
  if (url === '' || config.isolation.mode === 'none') return { redisUsers: undefined, missing }
  const redisUsers = await RedisUsers.open({ url, dataDir: config.dataDir, log })
  if (redisUsers instanceof RedisUsers) return { redisUsers, missing }
  missing.push(`a Redis user per agent (${redisUsers.reason}): agents share the user of REDIS_URL`)
  return { redisUsers: undefined, missing }
}

const registerAgainEveryMs = 5000

/** Registers running processes again whose replicas another gateway removed after missed heartbeats. */
function registerAgain(processes: Iterable<RegisteredProcess>, options: SupervisedAgentsOptions): void {
  for (const { id, agent } of processes) {
    if (id === undefined) continue
    const replicas = options.registry.find(id)?.replicas ?? []
    if (agent.replica === undefined || replicas.some((one) => one.id === agent.replica)) continue
    register(agent, options).catch((error: unknown) => {
      options.log.warn({ err: error, agent: agent.name }, 'agent could not be registered again')
    })
  }
}

/** Returns the entry point of the agent server, which is TypeScript in a clone and JavaScript in the package. */
function agentCommand(folder: string) {
  const agent = () => fileURLToPath(import.meta.resolve('@parley/agent/internal/server/agent-process'))
  const entry = relayEntryIn(folder) ?? manifestEntryIn(folder) ?? agent()
  return { file: process.execPath, args: ['--disable-warning=ExperimentalWarning', entry, folder] }
}

/** Returns the entry point of an agent with a manifest instead of code. */
function manifestEntryIn(folder: string): string | undefined {
  const file = agentFiles.map((name) => path.join(folder, name)).find((one) => existsSync(one))
  return isManifest(file) ? fileURLToPath(import.meta.resolve('@parley/relay/manifest-process')) : undefined
}

/** Returns the file that STORE_URL names for the certificate of the database. */
function authorityFiles(storeUrl = ''): string[] {
  const [, file] = /[?&]tlsCAFile=([^&]+)/i.exec(storeUrl) ?? []
  return file === undefined ? [] : [path.resolve(decodeURIComponent(file))]
}

/** The settings that name the collector, to which agents export traces, metrics and logs. */
const collectorNames = [
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
  'OTEL_EXPORTER_OTLP_LOGS_ENDPOINT',
]

/** Returns the servers that every agent connects to, as `host:port`. */
export function neededDestinations({
  addresses,
  environment,
  config,
  provider,
}: Pick<SupervisedAgentsOptions, 'addresses' | 'environment' | 'config' | 'provider'>): string[] {
  const { issuer, introspectionUrl, tokenUrl, clientMetadataUrl } = config.oauth
  const oauth = provider === undefined ? [issuer, introspectionUrl, tokenUrl, clientMetadataUrl] : []
  const urls = [
    addresses.local,
    ...oauth,
    environment['REDIS_URL'],
    ...collectorNames.map((name) => environment[name]),
  ]
  const ports: Record<string, string> = {
    'http:': '80',
    'https:': '443',
    'redis:': '6379',
    'rediss:': '6379',
  }
  const single = urls.flatMap((text = '') => {
    if (text === '') return []
    const { protocol, hostname, port } = new URL(text.replace('{client_id}', ''))
    return [`${hostname}:${port === '' ? ports[protocol] : port}`]
  })
  const hosts = /^mongodb:\/\/(?:[^@/]*@)?([^/?]+)/.exec(environment['STORE_URL'] ?? '')?.[1]
  const database = hosts?.split(',').map((host) => (/:\d+$/.test(host) ? host : `${host}:27017`)) ?? []
  return [...single, ...database]
}

function settingsOf(
  agent: AgentFolder,
  options: SupervisedAgentsOptions,
  redisUsers: RedisUsers | undefined,
): Record<string, string> {
  const { config, environment, addresses, provider } = options
  const issuer = provider?.issuer ?? config.oauth.issuer
  // PUBLIC_URL may not be reachable from this machine, so agents use the embedded server's local address.
  const introspection =
    provider === undefined ? config.oauth.introspectionUrl : `${addresses.local}/oauth2/introspect`
  const token = provider === undefined ? config.oauth.tokenUrl : `${addresses.local}/oauth2/token`
  const clients =
    provider === undefined ? config.oauth.clientMetadataUrl : `${addresses.local}/oauth2/clients/{client_id}`
  const compiled = getCompileCacheDir()
  return {
    GATEWAY_URL: addresses.local,
    // The URL in the card. The gateway's own URL names no agent.
    OAUTH_AUDIENCES: `${addresses.public}/agents/${agent.name}`,
    // Payment links must remain valid when the agent's port changes.
    CAPTURE_BASE_URL: `${addresses.public}/agents/${agent.name}`,
    // The gateway is the agents' proxy and forwards the client address that it derived from its own proxies.
    TRUSTED_PROXIES: [...gatewayAddresses(config.host), ...config.trustedProxies].join(','),
    ...(issuer !== undefined && { OAUTH_ISSUER: issuer }),
    ...(introspection !== undefined && { OAUTH_INTROSPECTION_URL: introspection }),
    ...(token !== undefined && { OAUTH_TOKEN_URL: token }),
    ...(clients !== undefined && { OAUTH_CLIENT_METADATA_URL: clients }),
    ...(environment['REDIS_URL'] && {
      REDIS_URL: redisUsers?.urlFor(agent.name) ?? environment['REDIS_URL'],
    }),
    ...(config.storeDir !== config.dataDir && {
      STORE_URL: `sqlite:${path.join(config.storeDir, 'agents', agent.name)}`,
    }),
    ...(compiled !== undefined && { NODE_COMPILE_CACHE: path.dirname(compiled) }),
  }
}

/** Returns the source addresses of the gateway's connections to agents on this machine. */
function gatewayAddresses(host: string): string[] {
  const own = isIP(host) !== 0 && host !== '0.0.0.0' && host !== '::' ? [host] : []
  return [...new Set(['127.0.0.1', '::1', ...own])]
}

/** Registers the agent with its card and skills. Resolves with the id of the entry. */
async function register(
  agent: ReadyAgent,
  { registry, upstream, log }: SupervisedAgentsOptions,
): Promise<string> {
  const card = readCard(agent.card)
  if (card.did !== agent.did) throw new Error('the agent card contains a different DID')
  const url = agent.url.replace(/\/+$/, '')
  const read = (path: string) =>
    readJson(`${url}${path}`, AbortSignal.timeout(5000), { dispatcher: upstream })
  const list = await read('/agent/skills').catch(() => undefined)
  const document = await read(`/did/resolve?did=${encodeURIComponent(agent.did)}`)
  const skills = readListedSkills(list?.['skills'])
  const entry = await registry.register({
    name: card.name,
    description: card.description,
    did: agent.did,
    url,
    card: card.card,
    skills: skills.length > 0 ? skills : card.skills,
    owner: agent.owner,
    origin: 'supervised',
    host: os.hostname(),
    ...(agent.replica !== undefined && { replicaId: agent.replica }),
    document,
    keys: verifyDocument(document, agent.did),
    // The supervisor received this key from the process that it started.
    verified: true,
    admitted: true,
    admittedBy: 'supervisor',
  })
  new Audit(log).record({
    who: 'supervisor',
    action: 'registry.register',
    target: entry.slug,
    allowed: true,
    reason: agent.did,
  })
  return entry.id
}

/** Returns the names of the settings for the client of an agent, or of the relay, at an external OAuth server. */
function clientSettings(name: string) {
  const prefix = name
    .replace(/^\./, '')
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
  return { id: `${prefix}_OAUTH_CLIENT_ID`, secret: `${prefix}_OAUTH_CLIENT_SECRET` }
}

function clientOf(name: string, environment: NodeJS.ProcessEnv) {
  const names = clientSettings(name)
  const [clientId, clientSecret] = [environment[names.id], environment[names.secret]]
  return clientId === undefined || clientSecret === undefined ? undefined : { clientId, clientSecret }
}
