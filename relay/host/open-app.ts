import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { resolveAgent } from '@parley/agent/internal/author/agent'
import { type AgentApp, type AgentAppOptions, startAgentApp } from '@parley/agent/internal/server/app'
import type { RelayedAgent } from '@parley/kit/auth/relayed-agent'
import { agentId } from '@parley/kit/did/did'
import { gatewayIdentity, type Identity } from '@parley/kit/did/identity'
import type { KeyPair } from '@parley/kit/did/keys'
import type { AllowedHosts } from '@parley/kit/net/allowed-hosts'
import type { AgentConfig } from '@parley/kit/process/config'
import type { Log } from '@parley/kit/process/log'
import type { RelayTiming } from '../handler/relayed-run.ts'
import type { LinkStore } from '../store/links.ts'
import { handlerOf, skillsOf } from './app-handler.ts'

/** The parts that all apps of a relay share. */
export interface HostParts
  extends Pick<AgentAppOptions, 'introspector' | 'clientKeys' | 'storeUrl' | 'redisUrl' | 'drainMs'> {
  config: AgentConfig
  /** The relay's own identity. Relays with the same key are processes of the same agents. */
  relay: Pick<Identity, 'did' | 'key'>
  links: LinkStore
  log: Log
  /** Exceptions to the private-address guard for calls of agents. */
  allowed: AllowedHosts
  timing?: Partial<RelayTiming>
}

/** How long a task may run at an agent, without pauses. */
const deadlineMs = 3_600_000
const concurrency = 256

/** The app of a foreign agent. */
export interface OpenedApp extends AgentApp {
  /** Applies a changed description that differs in texts and skills only. Returns whether that is possible. */
  update(agent: RelayedAgent): boolean
}

/** Starts the server of one foreign agent: the same as for our agents, with a handler that calls the foreign one. */
export async function openApp(slug: string, agent: RelayedAgent, parts: HostParts): Promise<OpenedApp> {
  const { config, links, log: all, allowed, timing, relay, ...options } = parts
  const log = all.child({ agent: slug })
  await using stack = new AsyncDisposableStack()
  const { id } = agent
  const { identity, ...folders } = placeOf(id, parts)
  const outputMaxBytes = config.artifactMaxBytes
  const handler = handlerOf(agent, { links, allowed, outputMaxBytes, timing, log }, stack)
  const served = resolveAgent({
    ...textsOf(agent),
    author: 'relay',
    deadlineMs,
    concurrency,
    handle: handler.handle,
  })
  const app = stack.use(
    await startAgentApp({
      ...options,
      log,
      agent: served,
      identity,
      config: {
        ...config,
        ...folders,
        publicUrl: agent.publicUrl,
        audiences: [...config.audiences, ...agent.audiences],
      },
      redisName: `${agentId(relay.did)}.${id}`,
      servedAt: agent.publicUrl,
      committed: handler.committed,
    }),
  )
  const open = stack.move()
  return {
    ...app,
    update: (changed) => {
      if (handler.changeTools === undefined || !isSameServer(agent, changed)) return false
      handler.changeTools(changed)
      const { handle } = handler
      const { name, description, version, skills } = resolveAgent({ ...textsOf(changed), handle })
      Object.assign(served, { name, description, version, skills })
      return true
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

function textsOf(agent: RelayedAgent) {
  return {
    name: agent.name.slice(0, 128),
    description: agent.description.slice(0, 5000) || agent.name,
    version: agent.version.slice(0, 50),
    skills: skillsOf(agent),
  }
}

/** Whether two descriptions differ in their texts and skills only. */
function isSameServer(before: RelayedAgent, after: RelayedAgent): boolean {
  const serverOf = ({
    name: _name,
    description: _text,
    version: _version,
    skills: _skills,
    ...server
  }: RelayedAgent) => server
  return isDeepStrictEqual(serverOf(before), serverOf(after))
}

/** Returns the identity under which an agent's data is stored, and its folders. */
export function placeOf(id: string, { config, relay }: Pick<HostParts, 'config' | 'relay'>) {
  const folder = path.join('agents', id)
  return {
    identity: identityOf(id, relay.key),
    dataDir: path.join(config.dataDir, folder),
    storeDir: path.join(config.storeDir, folder),
  }
}

/** Derives the key of an agent from that of the relay, so that copies of the relay on several machines agree on it. */
function identityOf(id: string, relay: KeyPair): Identity {
  return gatewayIdentity({
    seed: relay.deriveSecret(`parley relayed agent ${id}`),
    author: 'relay',
    name: 'agent',
  })
}
