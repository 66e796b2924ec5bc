import { ParleyError } from '@parley/wire/errors'
import type { AgentEntry } from '../../registry/entry.ts'
import type { Registry } from '../../registry/registry.ts'
import type { RoutingStore } from '../../routing/store/routing-store.ts'
import type { AgentReader, UnreadAgent } from '../agent-reader.ts'
import type { ReadBudget } from '../read-budget.ts'
import type { CallerView } from '../view.ts'

/** Maximum number of agents that one request reads. */
const agentsMax = 500
/** Maximum number of agents that a request of a caller reads, unless it has used more of them through the gateway. */
const callerAgentsMax = 50

export interface ReadSources {
  reader: Pick<AgentReader, 'readable' | 'find'>
  registry: Pick<Registry, 'bySlug'>
  store: Pick<RoutingStore, 'agentsOf' | 'find'>
  budget: Pick<ReadBudget, 'spend'>
}

export interface AgentsToRead {
  agents: readonly AgentEntry[]
  /** At most one entry, for the agents over the maximum. */
  unread: UnreadAgent[]
}

/**
 * Selects the agents for a request, and counts them for its caller. The agents that the owner has used through the gateway come
 * first, then those with recent use: at most 500 for an operator, and 50 for another caller, who has few entries elsewhere. Agents
 * behind the relay are read only if they have been used, because the relay opens the app of each of them.
 *
 * @param view the caller; undefined if the gateway reads for itself
 * @param owner the only owner of the list
 * @throws ParleyError NotFound for a slug without an agent, TooManyRequests
 */
export async function agentsToRead(
  sources: ReadSources,
  query: { view?: CallerView | undefined; agent?: string | undefined; owner?: string | undefined },
): Promise<AgentsToRead> {
  const chosen = await choose(sources, query)
  if (query.view !== undefined) sources.budget.spend(query.view, chosen.agents.length)
  return chosen
}

async function choose(
  { reader, registry, store }: ReadSources,
  { view, agent, owner = view?.owner }: Parameters<typeof agentsToRead>[1],
): Promise<AgentsToRead> {
  if (agent !== undefined) {
    if (registry.bySlug(agent) === undefined) throw noSuchAgent(agent)
    const entry = reader.find(agent)
    return { agents: entry === undefined ? [] : [entry], unread: [] }
  }
  const ofOwner = new Set(owner === undefined ? [] : await store.agentsOf(owner, agentsMax))
  const own: AgentEntry[] = []
  const used: AgentEntry[] = []
  const others: AgentEntry[] = []
  for (const entry of reader.readable()) {
    if (ofOwner.has(entry.id)) own.push(entry)
    else if (isUsed(entry)) used.push(entry)
    else if (entry.relay === undefined) others.push(entry)
  }
  const agents = [...own, ...used, ...others]
  const max = view?.owner === undefined ? agentsMax : Math.max(own.length, callerAgentsMax)
  const left = agents.length - max
  if (left <= 0) return { agents, unread: [] }
  const reason = `${left} more agents with less use were not read. Choose an agent to read it.`
  return { agents: agents.slice(0, max), unread: [{ agent: '*', reason }] }
}

/** Whether the agent reports tasks, or the gateway has seen tasks of it end. */
function isUsed({ load, measurements }: AgentEntry): boolean {
  const { queueDepth = 0, activeTasks = 0, completed = 0, failed = 0 } = load
  return queueDepth + activeTasks + completed + failed + (measurements?.samples ?? 0) > 0
}

export function noSuchAgent(slug: string): ParleyError {
  return new ParleyError('NotFound', {
    message: 'There is no agent with this name: npx parley agents lists the agents',
    data: { reason: 'agent', agent: slug },
  })
}
