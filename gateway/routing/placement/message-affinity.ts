import type { IncomingMessage } from '@parley/wire/model/call'
import { keyOfTask } from '@parley/wire/model/chosen-task-id'
import type { AgentEntry } from '../../registry/entry.ts'
import { agentHasLeft, mayBeAt } from '../forwarding/upstream-error.ts'
import type { RoutingStore } from '../store/routing-store.ts'
import { settledRoute } from './route-claims.ts'
import type { LookupOwner, LookupResult, TaskLocator } from './task-locator.ts'

/** The agent that must receive a message. */
export interface Affinity {
  entry: AgentEntry
  /** The id that binds the message to the agent. `key` means that the same idempotency key was sent before. */
  by: 'key' | 'task' | 'context' | 'payment'
}

export interface AffinityLookup {
  /** Undefined if the message is new. */
  affinity: Affinity | undefined
  /** Supervised agents that may have the message's task, in which case no external agent may receive the message. */
  mayHaveTask: readonly string[]
}

interface RouteSources {
  store: RoutingStore
  taskLocator: TaskLocator
}

/**
 * Finds a message's agent by its idempotency key, its task or its context, in this order. Supervised agents are
 * queried for a task or context without a route. `referenceTaskIds` do not count. An unresponsive agent does not
 * delay a message with an unknown context: most of these contexts are new.
 * @throws ParleyError Unavailable if the agent has left the registry or an unresponsive agent may have the task
 */
export async function affinityOf(
  { store, taskLocator }: RouteSources,
  { taskId, contextId }: IncomingMessage,
  key: string | undefined,
  caller: LookupOwner,
): Promise<AffinityLookup> {
  const at = (agent: string, by: 'key' | 'task' | 'context', mayHaveTask: readonly string[] = []) => {
    const entry = caller.agents.find(agent)
    if (entry === undefined) throw agentHasLeft(by === 'key' ? 'message' : by)
    return { affinity: { entry, by }, mayHaveTask }
  }
  const byKey =
    key === undefined ? undefined : await settledRoute(store, await store.find(caller.owner, 'key', key))
  if (byKey !== undefined) return at(byKey.agent, 'key')
  const [task, context] = await Promise.all([
    taskId === undefined ? undefined : findTask({ store, taskLocator }, taskId, key, caller),
    contextId === undefined ? undefined : taskLocator.find('context', contextId, caller, true),
  ])
  if (task !== undefined && 'route' in task) return at(task.route.agent, 'task')
  if (task !== undefined && task.silent.length > 0) throw mayBeAt(task.silent, 'task')
  const mayHaveTask = task?.unknown ?? []
  if (context !== undefined && 'route' in context) return at(context.route.agent, 'context', mayHaveTask)
  return { affinity: undefined, mayHaveTask }
}

/** No agent is queried for the task of a message whose key determines the task id, because the key has no route. */
async function findTask(
  { store, taskLocator }: RouteSources,
  taskId: string,
  key: string | undefined,
  caller: LookupOwner,
): Promise<LookupResult> {
  if (keyOfTask(key, taskId) === undefined) return taskLocator.find('task', taskId, caller)
  const route = await settledRoute(store, await store.find(caller.owner, 'task', taskId))
  return route === undefined ? { silent: [], unknown: [] } : { route }
}
