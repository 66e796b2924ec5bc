import type { Log } from '@parley/kit/process/log'
import type { Codec } from '@parley/wire/codecs/codec'
import { idsOf } from '@parley/wire/model/ids'
import { isExternal, isRecorded } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import type { Registry } from '../../registry/registry.ts'
import type { Route, RoutingStore } from '../store/routing-store.ts'
import type { TaskLocator } from './task-locator.ts'

interface AcceptedMessage {
  /** The dialect of the response. */
  codec: Pick<Codec, 'readTaskReference'>
  message: { taskId?: string | undefined; contextId?: string | undefined }
  owner: string
  entry: AgentEntry
  /** When the message was received, in milliseconds since 1970. Default: now. */
  at?: number
  /** Absent if nothing is learned from the task's outcome. */
  words?: Record<string, number>
}

interface RouteSources {
  registry: Pick<Registry, 'find'>
  store: Pick<RoutingStore, 'find'>
  taskLocator: Pick<TaskLocator, 'claimFor'>
  log: Log
}

/**
 * The routes of the task in an agent's response and of its context, the task first. Empty if the response is not a
 * task or is not the task that the message names. A route to another agent is kept, unless it rests on the claim of
 * an external agent and this agent is supervised.
 */
export async function newRoutes(
  sources: RouteSources,
  taken: AcceptedMessage,
  task: unknown,
): Promise<Route[]> {
  const { registry, store, taskLocator, log } = sources
  const { entry } = taken
  const kept: Route[] = []
  for (const route of routesOf(task, taken)) {
    const known = await store.find(route.owner, route.kind, route.id).catch(() => undefined)
    const isSame = known === undefined || known.agent === entry.id
    if (isSame || (!isExternal(entry) && isClaimed(registry, known))) {
      const claim = taskLocator.claimFor(entry, route, known)
      kept.push(claim === undefined ? route : { ...route, claim })
    } else
      log.warn(
        { agent: entry.id, [route.kind]: route.id },
        'agent returned an id that belongs to another agent',
      )
  }
  return kept
}

/**
 * Whether a lookup (`TaskLocator`) finds the task or context of the agent without its route. It queries every supervised agent, but
 * relayed ones only if the caller is known to have used them.
 */
export function canBeRestored(entry: AgentEntry, { kind, claim }: Route): boolean {
  return (kind === 'task' || kind === 'context') && claim === undefined && !isRecorded(entry)
}

function isClaimed(registry: Pick<Registry, 'find'>, { agent, claim }: Route): boolean {
  const holder = registry.find(agent)
  return holder === undefined ? claim !== undefined : isExternal(holder)
}

function routesOf(
  task: unknown,
  { codec, owner, words, message, entry, at = Date.now() }: AcceptedMessage,
): Route[] {
  const reference = codec.readTaskReference(task, idsOf(owner))
  const id = idFor(reference?.taskId, message.taskId)
  if (id === undefined) return []
  const context = idFor(reference?.contextId, message.contextId)
  const of = { owner, agent: entry.id, at }
  const taskRoute: Route = {
    ...of,
    kind: 'task',
    id,
    ...(words !== undefined && { words }),
    ...(context !== undefined && { context }),
  }
  return context === undefined ? [taskRoute] : [taskRoute, { ...of, kind: 'context', id: context }]
}

function idFor(returned: unknown, expected: string | undefined): string | undefined {
  if (typeof returned !== 'string' || returned.length > 128) return undefined
  return expected === undefined || returned === expected ? returned : undefined
}
