import os from 'node:os'
import path from 'node:path'
import { reportReady, requestSupplies } from '@parley/agent/internal/server/registration/supervisor-channel'
import { introspectorOf } from '@parley/agent/internal/server/run-agent'
import { HttpClientKeys } from '@parley/kit/auth/client-keys'
import { clientMetadataUrl } from '@parley/kit/auth/client-metadata-url'
import { relayedAgentMessage } from '@parley/kit/auth/relayed-agent'
import { acceptingStatements, StatementVerifier } from '@parley/kit/auth/statement'
import { agentIdentity } from '@parley/kit/did/identity'
import {
  type AgentConfig,
  type AgentSecrets,
  agentConfig,
  allowedHosts,
  localHosts,
} from '@parley/kit/process/config'
import { type Log, makeLog } from '@parley/kit/process/log'
import { type Running, run } from '@parley/kit/process/run'
import { ConfigError } from '@parley/kit/process/settings'
import { version } from '@parley/kit/process/version'
import { startTelemetry } from '@parley/kit/telemetry/telemetry'
import { startRelayServer } from './host/relay-server.ts'
import { RelayedAgents } from './host/relayed-agents.ts'
import { openLinks } from './store/links.ts'

/** Runs the relay with settings from `process.env` until a signal arrives. Resolves with the exit code. */
export async function runRelay(): Promise<number> {
  try {
    const { config, secrets } = agentConfig(process.env)
    const log = makeLog({ level: config.logLevel, name: 'relay' })
    const allowed = process.env['REGISTRY_ALLOWED_HOSTS'] ?? localHosts(config)
    return await run(() => start(config, secrets, { log, allowed }), { log })
  } catch (error) {
    const reason = error instanceof ConfigError ? { reason: error.message } : { err: error }
    makeLog({ level: 'info', name: 'relay' }).fatal(reason, 'agent cannot start')
    return 1
  }
}

async function start(
  config: AgentConfig,
  secrets: AgentSecrets,
  { log, allowed }: { log: Log; allowed: string },
): Promise<Running> {
  await using stack = new AsyncDisposableStack()
  stack.use(await startTelemetry(secrets.telemetry, { name: 'relay', version }))
  const identity = await agentIdentity('relay', path.join(config.dataDir, 'agent.key.json'))
  const supplied = await requestSupplies(identity)
  const { client, storeUrl = secrets.storeUrl } = supplied
  const { gatewayUrl, oauth } = config
  if (client === undefined || gatewayUrl === undefined)
    throw new ConfigError(['The relay needs GATEWAY_URL and an OAuth client.'])
  const provider = stack.use(introspectorOf(config, client))
  const keysUrl = clientMetadataUrl(oauth, () => {})
  const clientKeys =
    keysUrl === undefined ? undefined : stack.use(new HttpClientKeys({ url: keysUrl, ...client }))
  const relay = `${os.hostname()} ${config.storeDir}`
  const links = stack.use(await openLinks({ storeUrl, folder: config.storeDir, relay }))
  const agents = stack.use(
    new RelayedAgents({
      config,
      relay: identity,
      links,
      log,
      introspector: acceptingStatements(provider, new StatementVerifier(gatewayUrl)),
      ...(clientKeys !== undefined && { clientKeys }),
      storeUrl,
      redisUrl: secrets.redisUrl,
      allowed: allowedHosts('REGISTRY_ALLOWED_HOSTS', allowed),
    }),
  )
  const listen = (message: unknown) => {
    const change = relayedAgentMessage.safeParse(message).data
    if (change === undefined) return
    agents.change(change).catch((error: unknown) => {
      log.error({ err: error, agent: change.slug }, 'a change of an agent could not be applied')
    })
  }
  process.on('message', listen)
  stack.defer(() => void process.off('message', listen))
  const server = stack.use(await startRelayServer(agents, { host: config.host, port: config.port, log }))
  log.info({ url: server.address }, 'relay is ready')
  reportReady(server.address, {})
  const open = stack.move()
  return { [Symbol.asyncDispose]: () => open.disposeAsync() }
}
