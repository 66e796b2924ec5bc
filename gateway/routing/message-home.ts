import type { MessageIn } from '../../shared/protocol/message-in.ts'
import type { AgentEntry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'
import type { RoutingStore } from './routing-store.ts'
import { agentIsDown } from './upstream-error.ts'
import type { Asking, Whereabouts } from './whereabouts.ts'

/** The agent that a message belongs to. */
export interface Home {
  entry: AgentEntry
  /** The message came before, under this key. */
  knownKey: boolean
}

interface Knowing {
  registry: Registry
  store: RoutingStore
  whereabouts: Whereabouts
}

/**
 * Where a message belongs: where it was sent before under the same key, where its task lives, where its context lives.
 * Undefined: it is new. `referenceTaskIds` do not decide.
 * @throws ParleyError Unavailable when an agent that may have the task does not answer
 */
export async function homeOf(
  { registry, store, whereabouts }: Knowing,
  { taskId, contextId }: MessageIn,
  key: string | undefined,
  asking: Asking,
): Promise<Home | undefined> {
  const entryOf = (agent: string) => {
    const entry = registry.find(agent)
    if (entry === undefined) throw agentIsDown('that took it has left the registry and')
    return entry
  }
  const byKey = key === undefined ? undefined : await store.find(asking.owner, 'key', key)
  if (byKey !== undefined) return { entry: entryOf(byKey.agent), knownKey: true }
  if (taskId !== undefined) {
    const found = await whereabouts.find('task', taskId, asking)
    if ('route' in found) return { entry: entryOf(found.route.agent), knownKey: false }
  }
  if (contextId === undefined) return undefined
  const context = await store.find(asking.owner, 'context', contextId)
  return context === undefined ? undefined : { entry: entryOf(context.agent), knownKey: false }
}
