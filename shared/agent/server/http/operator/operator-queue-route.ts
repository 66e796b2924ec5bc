import type { Store, UnfinishedTask } from '@parley/engine/store/store'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { agentQueue } from '@parley/wire/codecs/answers/operator/tasks'
import { ParleyError } from '@parley/wire/errors'
import { isTerminal, pausedStates, taskStates } from '@parley/wire/model/task'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import { byStatement } from './operator-access.ts'
import type { OperatorRoutes } from './operator-routes.ts'

const queue: OperationDescription = {
  summary: 'The queue of the agent, by owner, and its tasks by state',
  ...byStatement,
  responses: { 200: { description: 'The queue', json: agentQueue } },
}

type Queue = z.input<typeof agentQueue>

const ownersMax = 20
/** Several consoles share one answer, because it is counted in the store. */
const keptMs = 1000

/** Adds `/operator/queue` (spec/operator.md#queue). It counts the tasks of all processes of the agent. */
export function addOperatorQueueRoute(
  app: FastifyInstance,
  { services: { store }, operatorOf }: OperatorRoutes,
): void {
  let kept: { queue: Promise<Queue>; until: number } | undefined
  app.get('/operator/queue', { config: { api: queue } }, async (request) => {
    const { owner } = await operatorOf(request, 'tasks.read')
    if (owner !== undefined) {
      throw new ParleyError('InsufficientPermissions', {
        message: 'The queue contains tasks of all owners, so that only operators see it',
        data: { reason: 'operator_statement' },
      })
    }
    if (kept === undefined || kept.until < performance.now())
      kept = { queue: readQueue(store), until: performance.now() + keptMs }
    return kept.queue
  })
}

async function readQueue(store: Store): Promise<Queue> {
  const [counts, unfinished] = await Promise.all([
    store.countByState(),
    // Every lease counts as ended, so that all unfinished tasks are listed.
    store.listUnfinished(Number.MAX_SAFE_INTEGER, ''),
  ])
  const queued = unfinished.filter(({ state }) => state === 'submitted')
  const [oldest] = queued
  const waiting = pausedStates.reduce((sum, state) => sum + (counts[state] ?? 0), 0)
  return {
    queued: queued.length,
    running: counts.working ?? 0,
    waiting,
    oldest_queued_at: oldest === undefined ? null : await queuedSince(store, oldest),
    owners: ownersOf(queued),
    ended: Object.fromEntries(taskStates.filter(isTerminal).map((state) => [state, counts[state] ?? 0])),
  }
}

async function queuedSince(store: Store, { id, owner }: UnfinishedTask): Promise<string | null> {
  const outline = await store.outlineTask(id, owner, () => {})
  return outline?.task.status.timestamp ?? null
}

function ownersOf(queued: readonly UnfinishedTask[]): Queue['owners'] {
  const counts = new Map<string, number>()
  for (const { owner } of queued) {
    // The owner of what an agent created for a client begins with the client's ID (`delegatedOwner`).
    const [subject = owner] = owner.split('\u001F')
    counts.set(subject, (counts.get(subject) ?? 0) + 1)
  }
  return [...counts]
    .map(([owner, count]) => ({ owner, queued: count }))
    .sort((a, b) => b.queued - a.queued)
    .slice(0, ownersMax)
}
