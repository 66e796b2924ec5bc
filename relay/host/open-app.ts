import path from 'node:path'
import { resolveAgent } from '@parley/agent/internal/author/agent'
import type { SkillDefinition } from '@parley/agent/internal/author/define-agent'
import { type AgentApp, type AgentAppOptions, startAgentApp } from '@parley/agent/internal/server/app'
import type { RelayedAgent } from '@parley/kit/auth/relayed-agent'
import { agentId } from '@parley/kit/did/did'
import { gatewayIdentity, type Identity } from '@parley/kit/did/identity'
import type { KeyPair } from '@parley/kit/did/keys'
import type { AllowedHosts } from '@parley/kit/net/allowed-hosts'
import type { AgentConfig } from '@parley/kit/process/config'
import type { Log } from '@parley/kit/process/log'
import { dialectNamed } from '@parley/wire/codecs/dialects'
import { A2aClient } from '../client/a2a-client.ts'
import { cancelAtAgent } from '../handler/cancel-at-agent.ts'
import { type RelayTiming, relayedRun } from '../handler/relayed-run.ts'
import type { LinkStore } from '../store/links.ts'

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

/** Starts the server of one foreign agent: the same as for our agents, with a handler that calls the foreign one. */
export async function openApp(slug: string, agent: RelayedAgent, parts: HostParts): Promise<AgentApp> {
  const { config, links, log: all, allowed, timing, relay, ...options } = parts
  const log = all.child({ agent: slug })
  await using stack = new AsyncDisposableStack()
  const { id, url, streaming, credential } = agent
  const dialect = dialectNamed(agent.dialect)
  const { identity, ...folders } = placeOf(id, parts)
  const client = stack.use(new A2aClient({ url, dialect, streaming, credential, allowed }))
  const outputMaxBytes = config.artifactMaxBytes
  const relayed = {
    entryId: id,
    client,
    links,
    streaming,
    outputMaxBytes,
    ...(timing !== undefined && { timing }),
  }
  const app = stack.use(
    await startAgentApp({
      ...options,
      log,
      agent: resolveAgent({
        name: agent.name.slice(0, 128),
        description: agent.description.slice(0, 5000) || agent.name,
        version: agent.version.slice(0, 50),
        author: 'relay',
        skills: skillsOf(agent),
        deadlineMs,
        concurrency,
        handle: (context) => relayedRun(relayed, context),
      }),
      identity,
      config: {
        ...config,
        ...folders,
        publicUrl: agent.publicUrl,
        audiences: [...config.audiences, ...agent.audiences],
      },
      redisName: `${agentId(relay.did)}.${id}`,
      servedAt: agent.publicUrl,
      committed: cancelAtAgent({ entryId: id, client, links, log }),
    }),
  )
  const open = stack.move()
  return { ...app, [Symbol.asyncDispose]: () => open.disposeAsync() }
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

const mimeType = /^[\w.+*-]+\/[\w.+*-]+$/
const skillsMax = 1000

/** Returns the skills of the card with IDs and texts that our cards can have. */
function skillsOf({ skills, name, description }: RelayedAgent): SkillDefinition[] {
  const read = new Map<string, SkillDefinition>()
  for (const skill of skills.slice(0, skillsMax)) {
    const id = skill.id.replace(/[^\w.-]/g, '-').slice(0, 128) || 'skill'
    const [inputModes, outputModes] = [skill.inputModes, skill.outputModes].map((modes) =>
      modes.filter((mode) => mimeType.test(mode)),
    )
    read.set(id, {
      id,
      name: skill.name.trim().slice(0, 200) || id,
      description: skill.description.trim().slice(0, 5000) || skill.name.trim() || id,
      tags: skill.tags.map((tag) => tag.slice(0, 1000)).slice(0, 500),
      ...(inputModes !== undefined && inputModes.length > 0 && { inputModes }),
      ...(outputModes !== undefined && outputModes.length > 0 && { outputModes }),
    })
  }
  if (read.size > 0) return [...read.values()]
  return [{ id: 'default', name: name.slice(0, 200), description: description.slice(0, 5000) || name }]
}
