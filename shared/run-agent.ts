import path from 'node:path'
import { type AgentApp, startAgentApp } from './app.ts'
import { HttpClientKeys } from './auth/client-keys.ts'
import { ClientToken } from './auth/client-token.ts'
import { discover } from './auth/discovery.ts'
import { HttpIntrospector } from './auth/introspection.ts'
import { agentCard } from './discovery/agent-card.ts'
import { loadAgent } from './handler/load-agent.ts'
import { agentIdentity } from './identity/identity.ts'
import { type AgentConfig, type AgentSecrets, agentConfig } from './process/config.ts'
import { type Log, makeLog } from './process/log.ts'
import { type Running, run } from './process/run.ts'
import { ConfigError } from './process/settings.ts'
import { startHeartbeat } from './registration/heartbeat.ts'
import { askForClient, isSupervised, tellReady } from './registration/supervisor-channel.ts'

interface Client {
  clientId: string
  clientSecret: string
}

/** Runs the agent of the folder until a signal comes; resolves with the exit code. What it needs comes from `process.env`. */
export async function runAgent(folder: string): Promise<number> {
  const name = path.basename(path.resolve(folder))
  try {
    const { config, secrets } = agentConfig(process.env)
    const log = makeLog({ level: config.logLevel, name })
    return await run(() => start(folder, config, secrets, log), { log })
  } catch (error) {
    const log = makeLog({ level: 'info', name })
    log.fatal(error instanceof ConfigError ? { reason: error.message } : { err: error }, 'agent cannot start')
    return 1
  }
}

async function start(folder: string, config: AgentConfig, secrets: AgentSecrets, log: Log): Promise<Running> {
  await using stack = new AsyncDisposableStack()
  const agent = await loadAgent(folder)
  const identity = await agentIdentity(agent.author, path.join(config.dataDir, 'agent.key.json'))
  const { did } = identity
  const supplied = isSupervised() ? await askForClient(identity) : undefined
  const client = supplied ?? configuredClient(config, secrets)
  const introspector = stack.use(introspectorOf(config, client))
  const clientKeys = clientKeysOf(config, client)
  if (clientKeys !== undefined) stack.use(clientKeys)
  else if (agent.signatures === 'required') {
    throw new ConfigError([
      'OAUTH_CLIENT_METADATA_URL must be set: this agent requires signatures, and asks there for the keys.',
    ])
  }
  const known = clientKeys === undefined ? {} : { clientKeys }
  const app = stack.use(await startAgentApp({ agent, identity, config, introspector, log, ...known }))
  const heartbeat = heartbeatOf(app, { config, secrets, client, did, log })
  if (heartbeat !== undefined) stack.use(heartbeat)
  log.info({ url: app.baseUrl, address: app.address, did }, 'agent is ready')
  tellReady(app.address, agentCard(agent, { did, url: app.baseUrl }))
  const open = stack.move()
  return { [Symbol.asyncDispose]: () => open.disposeAsync() }
}

function configuredClient({ oauth }: AgentConfig, { oauthClientSecret }: AgentSecrets): Client | undefined {
  if (oauth.clientId === undefined || oauthClientSecret === undefined) return undefined
  return { clientId: oauth.clientId, clientSecret: oauthClientSecret }
}

/** @throws ConfigError when it is not said who knows the tokens */
function introspectorOf({ oauth }: AgentConfig, client: Client | undefined): HttpIntrospector {
  const url = endpoint(oauth.introspectionUrl, oauth.issuer, 'introspection_endpoint')
  if (url === undefined) {
    throw new ConfigError([
      'OAUTH_ISSUER or OAUTH_INTROSPECTION_URL must be set: an agent checks every token there.',
    ])
  }
  if (client === undefined) {
    throw new ConfigError([
      'OAUTH_CLIENT_ID and OAUTH_CLIENT_SECRET must be set: introspection needs a client.',
    ])
  }
  return new HttpIntrospector({ url, ...client })
}

function clientKeysOf({ oauth }: AgentConfig, client: Client | undefined): HttpClientKeys | undefined {
  if (oauth.clientMetadataUrl === undefined || client === undefined) return undefined
  return new HttpClientKeys({ url: oauth.clientMetadataUrl, ...client })
}

type Endpoint = 'introspection_endpoint' | 'token_endpoint'

async function endpointOf(issuer: string, name: Endpoint): Promise<string> {
  const endpoint = (await discover(issuer))[name]
  if (endpoint === undefined) throw new Error(`the OAuth server names no ${name}`)
  return endpoint
}

/** The configured address, else what discovery says; undefined when neither is set. */
function endpoint(configured: string | undefined, issuer: string | undefined, name: Endpoint) {
  if (configured !== undefined || issuer === undefined) return configured
  return () => endpointOf(issuer, name)
}

interface HeartbeatParts {
  config: AgentConfig
  secrets: AgentSecrets
  client: Client | undefined
  did: string
  log: Log
}

/** Undefined without a gateway, or without a token for it. */
function heartbeatOf({ services }: AgentApp, parts: HeartbeatParts): Disposable | undefined {
  const { config, secrets, client, did, log } = parts
  const { gatewayUrl, oauth } = config
  if (gatewayUrl === undefined) return undefined
  const tokenUrl = endpoint(oauth.tokenUrl, oauth.issuer, 'token_endpoint')
  const own =
    client !== undefined && tokenUrl !== undefined
      ? new ClientToken({ tokenUrl, scope: 'agent:write', ...client })
      : undefined
  const given = secrets.gatewayToken
  if (given === undefined && own === undefined) return undefined
  const { scheduler, figures } = services
  return startHeartbeat({
    gatewayUrl,
    did,
    log,
    token: () => (given === undefined ? (own as ClientToken).get() : Promise.resolve(given)),
    refused: () => own?.forget(),
    figures: () => ({
      queue_depth: scheduler.waiting,
      active_tasks: scheduler.active,
      completed: figures.completed,
      failed: figures.failed,
      latency_p50_ms: figures.percentile(0.5),
      latency_p95_ms: figures.percentile(0.95),
    }),
  })
}
