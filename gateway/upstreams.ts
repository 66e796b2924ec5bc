import os from 'node:os'
import type { Log } from '@parley/kit/process/log'
import type { Agent } from 'undici'
import type { RelayAddress } from './addresses.ts'
import { ForeignCards } from './health/foreign-cards.ts'
import { McpServers } from './health/mcp-servers.ts'
import { probeAgent } from './health/probe.ts'
import { isLoopback } from './oauth/client-rules.ts'
import { mcpDialect } from './registration/fetch-mcp-server.ts'
import type { AgentEntry } from './registry/entry.ts'
import type { DispatcherFor } from './routing/forwarding/agent-target.ts'
import { createRelayUpstream } from './routing/forwarding/relay-upstream.ts'
import { ReplicaBalancer } from './routing/forwarding/replica-balancer.ts'
import { createUpstream } from './routing/forwarding/upstream.ts'
import { agentIsDown } from './routing/forwarding/upstream-error.ts'
import type { Trust } from './trust.ts'

/** The connections to the agents. */
export interface Upstreams {
  /** To supervised agents. */
  upstream: Agent
  dispatcherFor: DispatcherFor
  /** Returns whether the agent responds. */
  probe: (entry: AgentEntry, signal: AbortSignal) => Promise<boolean>
}

/** Foreign agents are reached through the relay, and other external agents through the private-address guard. */
export function openUpstreams(
  { upstream: external, registration }: Pick<Trust, 'upstream' | 'registration'>,
  relayAddress: RelayAddress,
  log: Log,
  stack: AsyncDisposableStack,
): Upstreams {
  const upstream = stack.adopt(createUpstream(), (agent) => agent.destroy())
  const relay = stack.adopt(createRelayUpstream(relayAddress), (agent) => agent.destroy())
  const ways = new ReplicaBalancer()
  const dispatcherFor: DispatcherFor = (entry) => {
    if (entry.relay !== undefined) return relay
    return ways.dispatcherFor(reachable(entry), entry.origin === 'supervised' ? upstream : external)
  }
  const renewal = { renew: (id: string) => registration.renew(id), log }
  const cards = new ForeignCards(renewal)
  const servers = new McpServers(renewal)
  const probe = async (entry: AgentEntry, signal: AbortSignal) => {
    if (runsElsewhere(entry)) return false
    if (entry.relay?.dialect === mcpDialect) return servers.probe(entry)
    // The relay is up while the foreign agent may be down.
    if (entry.relay !== undefined)
      return cards.probe(entry, signal, { dispatcher: external }).catch(() => false)
    return probeAgent(entry, signal, { dispatcher: dispatcherFor(entry) })
  }
  return { upstream, dispatcherFor, probe }
}

/** Returns whether the agent runs on another machine at a loopback address, which is unreachable from here. */
function runsElsewhere({ host, url }: AgentEntry): boolean {
  return host !== undefined && host !== os.hostname() && isLoopback(url)
}

function reachable(entry: AgentEntry): AgentEntry {
  if (runsElsewhere(entry)) throw agentIsDown(entry.slug)
  return entry
}
