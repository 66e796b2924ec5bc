import type { MessageIn } from '../../shared/protocol/message-in.ts'
import type { AgentEntry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'
import { settled } from './placement.ts'
import type { RoutingStore } from './routing-store.ts'
import { agentIsDown } from './upstream-error.ts'
import type { Owned, Whereabouts } from './whereabouts.ts'

/** The agent that a message belongs to. */
export interface Home {
  entry: AgentEntry
  /** What told it; `key`: the message came before, under this key. */
  by: 'key' | 'task' | 'context' | 'payment'
}

interface Knowing {
  registry: Registry
  store: RoutingStore
  whereabouts: Whereabouts
}

/**
 * Where a message belongs: where it was sent before under the same key, where its task lives, where its context lives; what
 * no route tells of, agents that are trusted are asked for. Undefined: it is new. `referenceTaskIds` do not decide. An agent
 * that does not answer holds up no message: most ids that are not known here are new.
 * @throws ParleyError Unavailable when the agent has left the registry
 */
export async function homeOf(
  { registry, store, whereabouts }: Knowing,
  { taskId, contextId }: MessageIn,
  key: string | undefined,
  asking: Owned,
): Promise<Home | undefined> {
  const entryOf = (agent: string) => {
    const entry = registry.find(agent)
    if (entry === undefined) throw agentIsDown('that took it has left the registry and')
    return entry
  }
  const byKey =
    key === undefined ? undefined : await settled(store, await store.find(asking.owner, 'key', key))
  if (byKey !== undefined) return { entry: entryOf(byKey.agent), by: 'key' }
  const find = async (kind: 'task' | 'context', id: string | undefined) => {
    const found = id === undefined ? undefined : await whereabouts.find(kind, id, asking, 'trusted')
    return found !== undefined && 'route' in found ? found.route : undefined
  }
  const [task, context] = await Promise.all([find('task', taskId), find('context', contextId)])
  const route = task ?? context
  if (route === undefined) return undefined
  return { entry: entryOf(route.agent), by: task === undefined ? 'context' : 'task' }
}
