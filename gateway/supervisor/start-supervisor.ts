import { getCompileCacheDir } from 'node:module'
import { isIP } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { verifyDocument } from '@parley/kit/did/document'
import { Audit } from '@parley/kit/process/audit'
import { databaseUrl } from '@parley/kit/process/config'
import type { Log } from '@parley/kit/process/log'
import type { Agent as UpstreamAgent } from 'undici'
import type { Addresses } from '../addresses.ts'
import type { GatewayConfig } from '../config.ts'
import { readJson } from '../health/probe.ts'
import type { IdentityProvider } from '../oauth/identity-provider.ts'
import { readCard, readSkills } from '../registry/card.ts'
import type { Registry } from '../registry/registry.ts'
import type { AgentFolder } from './agent-folders.ts'
import { agentLines } from './agent-lines.ts'
import type { ReadyAgent } from './supervised-agent.ts'
import { Supervisor, type SupervisorOptions } from './supervisor.ts'

export interface SupervisedAgentsOptions {
  agentsDir: string
  config: GatewayConfig
  environment: NodeJS.ProcessEnv
  addresses: Addresses
  /** Absent: the agents' clients are at OAUTH_ISSUER, and named in the environment. */
  provider: IdentityProvider | undefined
  registry: Registry
  upstream: UpstreamAgent
  log: Log
  /** Processes of each agent. Default 1. */
  replicas?: number
  /** Ports after the gateway's that other gateways have. Default 0. */
  portsTaken?: number
  /** For tests. */
  overrides?: Partial<SupervisorOptions>
}

/** The agents that the supervisor runs. */
export type RunningAgents = Pick<Supervisor, 'settled' | 'leftOut' | 'pids'> & AsyncDisposable

interface Entered {
  /** Of its entry; undefined while that is made. */
  id: string | undefined
  agent: ReadyAgent
}

/** The supervisor with everything of the gateway that it needs: registry, OAuth clients, addresses. */
export async function superviseAgents(options: SupervisedAgentsOptions): Promise<RunningAgents> {
  const { config, environment, provider, registry, log } = options
  const entered = new Map<string, Entered>()
  const looking = setInterval(() => enterAgain(entered.values(), options), enterAgainEveryMs).unref()
  const supervisor = await Supervisor.start({
    agentsDir: options.agentsDir,
    dataDir: config.dataDir,
    host: config.host,
    firstPort: config.port === 0 ? 0 : config.port + 1 + (options.portsTaken ?? 0),
    replicas: options.replicas ?? 1,
    environment,
    settings: (agent) => settingsOf(agent, options),
    alsoRequired: (agent) => (provider === undefined ? Object.values(clientSettings(agent.name)) : []),
    clientFor: async ({ name, did, publicKey }) => {
      if (provider === undefined) return clientOf(name, environment)
      const scope = 'agent:read agent:write'
      return provider.ensureClient({ clientId: did, clientName: name, scope, publicKey, introspection: true })
    },
    onReady: async (agent) => {
      const key = `${agent.name} ${agent.number}`
      const now: Entered = { id: undefined, agent }
      entered.set(key, now)
      now.id = await enter(agent, options)
      // It ended meanwhile: nobody would tell the registry.
      if (entered.get(key) !== now) registry.processGone(now.id, agent.replica, 'starting')
    },
    onGone: (name, back, number) => {
      const known = entered.get(`${name} ${number}`)
      entered.delete(`${name} ${number}`)
      if (known?.id !== undefined)
        registry.processGone(known.id, known.agent.replica, back ? 'starting' : 'unreachable')
    },
    pass: agentLines(process.stderr),
    log,
    command: agentCommand,
    ...options.overrides,
  })
  return {
    settled: () => supervisor.settled(),
    leftOut: () => supervisor.leftOut(),
    pids: () => supervisor.pids(),
    [Symbol.asyncDispose]: async () => {
      clearInterval(looking)
      await supervisor[Symbol.asyncDispose]()
    },
  }
}

const enterAgainEveryMs = 5000

/** Another gateway may have dropped a process that was silent for too long, and runs again. */
function enterAgain(entered: Iterable<Entered>, options: SupervisedAgentsOptions): void {
  for (const { id, agent } of entered) {
    if (id === undefined) continue
    const replicas = options.registry.find(id)?.replicas ?? []
    if (agent.replica === undefined || replicas.some((one) => one.id === agent.replica)) continue
    enter(agent, options).catch((error: unknown) => {
      options.log.warn({ err: error, agent: agent.name }, 'agent could not be entered again')
    })
  }
}

/** The entry of the agent server: TypeScript in the clone, JavaScript in the packed package. */
function agentCommand(folder: string) {
  const entry = fileURLToPath(import.meta.resolve('@parley/agent/internal/server/agent-process'))
  return { file: process.execPath, args: ['--disable-warning=ExperimentalWarning', entry, folder] }
}

function settingsOf(agent: AgentFolder, options: SupervisedAgentsOptions): Record<string, string> {
  const { config, environment, addresses, provider } = options
  const issuer = provider?.issuer ?? config.oauth.issuer
  // PUBLIC_URL need not be reachable from the machine itself: the embedded server is asked where it listens.
  const introspection =
    provider === undefined ? config.oauth.introspectionUrl : `${addresses.local}/oauth2/introspect`
  const token = provider === undefined ? config.oauth.tokenUrl : `${addresses.local}/oauth2/token`
  const clients =
    provider === undefined ? config.oauth.clientMetadataUrl : `${addresses.local}/oauth2/clients/{client_id}`
  const compiled = getCompileCacheDir()
  return {
    GATEWAY_URL: addresses.local,
    // As its card says at the gateway.
    // And by the gateway's own name: a token for the gateway is good for what it routes to its own agents.
    OAUTH_AUDIENCES: `${addresses.public}/agents/${agent.name},${addresses.public}`,
    // Links that people were given outlive the port that the agent has in this life.
    CAPTURE_BASE_URL: `${addresses.public}/agents/${agent.name}`,
    // The gateway stands before them, and hands on what it believes of those that stand before itself.
    TRUSTED_PROXIES: [...ourAddresses(config.host), ...config.trustedProxies].join(','),
    ...(issuer !== undefined && { OAUTH_ISSUER: issuer }),
    ...(introspection !== undefined && { OAUTH_INTROSPECTION_URL: introspection }),
    ...(token !== undefined && { OAUTH_TOKEN_URL: token }),
    ...(clients !== undefined && { OAUTH_CLIENT_METADATA_URL: clients }),
    ...(environment['REDIS_URL'] && { REDIS_URL: environment['REDIS_URL'] }),
    ...(databaseUrl(environment['STORE_URL']) !== undefined && { STORE_URL: environment['STORE_URL'] ?? '' }),
    ...(config.storeDir !== config.dataDir && {
      STORE_URL: `sqlite:${path.join(config.storeDir, 'agents', agent.name)}`,
    }),
    ...(compiled !== undefined && { NODE_COMPILE_CACHE: path.dirname(compiled) }),
  }
}

/** From where the gateway's connections to agents on this machine come. */
function ourAddresses(host: string): string[] {
  const own = isIP(host) !== 0 && host !== '0.0.0.0' && host !== '::' ? [host] : []
  return [...new Set(['127.0.0.1', '::1', ...own])]
}

/** Enters the agent into the registry, with what it says of its skills; resolves with the id of its entry. */
async function enter(
  agent: ReadyAgent,
  { registry, upstream, log }: SupervisedAgentsOptions,
): Promise<string> {
  const card = readCard(agent.card)
  if (card.did !== agent.did) throw new Error('its card names another DID')
  const url = agent.url.replace(/\/+$/, '')
  const read = (path: string) =>
    readJson(`${url}${path}`, AbortSignal.timeout(5000), { dispatcher: upstream })
  const list = await read('/agent/skills').catch(() => undefined)
  const document = await read(`/did/resolve?did=${encodeURIComponent(agent.did)}`)
  const skills = readSkills(list?.['skills'])
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
    // The supervisor saw the key that it started the process with.
    verified: true,
    admitted: true,
    admittedBy: 'supervisor',
  })
  new Audit(log).decided({
    who: 'supervisor',
    action: 'registry.register',
    target: entry.slug,
    allowed: true,
    reason: agent.did,
  })
  return entry.id
}

/** Names of the settings of an agent's own client at another OAuth server. */
function clientSettings(name: string) {
  const prefix = name.toUpperCase().replace(/[^A-Z0-9]+/g, '_')
  return { id: `${prefix}_OAUTH_CLIENT_ID`, secret: `${prefix}_OAUTH_CLIENT_SECRET` }
}

function clientOf(name: string, environment: NodeJS.ProcessEnv) {
  const names = clientSettings(name)
  const [clientId, clientSecret] = [environment[names.id], environment[names.secret]]
  return clientId === undefined || clientSecret === undefined ? undefined : { clientId, clientSecret }
}
