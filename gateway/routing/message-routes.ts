import { isObject } from '../../shared/jsonrpc/envelope.ts'
import type { Log } from '../../shared/process/log.ts'
import type { MessageIn } from '../../shared/protocol/message-in.ts'
import type { Route, RoutingStore } from './routing-store.ts'

interface Taken {
  message: MessageIn
  owner: string
  /** Id of the agent's entry. */
  agent: string
  words: Record<string, number>
}

/**
 * Where the task that an agent answers with lives, and its context; the task first. None where the answer is no task, or
 * another than the message was for; and an agent that names what lives at another does not get it.
 */
export async function newRoutes(
  { store, log }: { store: Pick<RoutingStore, 'find'>; log: Log },
  taken: Taken,
  task: unknown,
): Promise<Route[]> {
  const kept: Route[] = []
  for (const route of routesOf(task, taken)) {
    const known = await store.find(route.owner, route.kind, route.id).catch(() => undefined)
    if (known === undefined || known.agent === route.agent) kept.push(route)
    else log.warn({ agent: route.agent, [route.kind]: route.id }, 'an agent named what another has')
  }
  return kept
}

function routesOf(task: unknown, { owner, words, message, agent }: Taken): Route[] {
  if (!isObject(task)) return []
  const id = idFor(task['id'] ?? task['task_id'], message.taskId)
  if (id === undefined) return []
  const context = idFor(task['context_id'] ?? task['contextId'], message.contextId)
  const of = { owner, agent, at: Date.now() }
  const taskRoute: Route = { ...of, kind: 'task', id, words, ...(context !== undefined && { context }) }
  return context === undefined ? [taskRoute] : [taskRoute, { ...of, kind: 'context', id: context }]
}

function idFor(told: unknown, asked: string | undefined): string | undefined {
  if (typeof told !== 'string' || told.length > 128) return undefined
  return asked === undefined || told === asked ? told : undefined
}
