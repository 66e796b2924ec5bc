import type { DocumentDatabase } from '@parley/kit/database/documents'
import { isTerminal } from '@parley/wire/model/task'
import { idempotencyKeyCollection } from '../idempotency-keys.ts'
import { pushConfigCollection, pushConfigTask } from '../push-configs.ts'
import type { ContextPage, ContextRecord, Feedback, Store } from '../store.ts'
import { contextHistory, type MemoryContext, type StoredTask } from './tasks.ts'

/** Maximum number of task ids listed for one context in a page. */
const idsPerContextMax = 1000

type ContextMethods = Pick<
  Store,
  | 'findContext'
  | 'isAnothersContext'
  | 'listContexts'
  | 'contextHistory'
  | 'clearContext'
  | 'saveFeedback'
  | 'findFeedback'
  | 'removeEnded'
>

/** Operations on contexts, and on data that is removed together with its task. */
export function contextMethods(store: MemoryContext, documents: DocumentDatabase): ContextMethods {
  const { tasks, contexts } = store
  const feedback = new Map<string, Feedback>()
  const keys = documents.collection(idempotencyKeyCollection)
  const configs = documents.collection(pushConfigCollection)
  const tasksOf = (contextId: string) => [...tasks.values()].filter((task) => task.contextId === contextId)
  const remove = async (task: StoredTask) => {
    tasks.delete(task.id)
    for (const [key, { taskId }] of feedback) if (taskId === task.id) feedback.delete(key)
    if (tasksOf(task.contextId).length === 0) contexts.delete(task.contextId)
    await keys.removeMany('of_task', { task_id: task.id })
    await configs.removeMany('of_task', pushConfigTask(task))
  }
  return {
    findContext: async (id, owner) => {
      const context = contexts.get(id)
      return context?.owner === owner ? { ...context } : undefined
    },
    isAnothersContext: async (id, owner) => contexts.has(id) && contexts.get(id)?.owner !== owner,
    listContexts: async (query) => listContexts(store, query),
    contextHistory: async (contextId, owner, limit) => contextHistory(store, contextId, owner, limit),
    clearContext: async (id, owner) => {
      if (contexts.get(id)?.owner !== owner) return 'absent'
      const all = tasksOf(id)
      if (all.some(({ state }) => !isTerminal(state))) return 'busy'
      await Promise.all(all.map(remove))
      return 'cleared'
    },
    saveFeedback: async (given) => {
      if (tasks.has(given.taskId)) feedback.set(feedbackKey(given), structuredClone(given))
    },
    findFeedback: async (taskId, owner) => structuredClone(feedback.get(feedbackKey({ taskId, owner }))),
    removeEnded: async (before, limit) => {
      const old = [...tasks.values()].filter(
        ({ state, updatedAt }) => isTerminal(state) && updatedAt < before,
      )
      const oldest = old.sort((a, b) => (a.updatedAt < b.updatedAt ? -1 : 1)).slice(0, limit)
      await Promise.all(oldest.map(remove))
      return oldest.length
    },
  }
}

const feedbackKey = ({ taskId, owner }: { taskId: string; owner: string }) => JSON.stringify([taskId, owner])

/** Lists the most recently changed context first. */
function listContexts(
  { contexts, tasks, cursors }: MemoryContext,
  { owner, limit, cursor }: { owner: string; limit: number; cursor?: string },
): ContextPage {
  const before = cursor === undefined ? undefined : String(cursors.open('contexts', owner, cursor))
  const found = [...contexts.values()]
    .filter((context) => context.owner === owner && (before === undefined || positionOf(context) < before))
    .sort((a, b) => (positionOf(a) < positionOf(b) ? 1 : -1))
  const items = found.slice(0, limit).map((context) => {
    const all = [...tasks.values()].filter(({ contextId }) => contextId === context.id)
    const taskIds = all.sort((a, b) => a.sequence - b.sequence).map(({ id }) => id)
    const busy = all.some(({ state }) => !isTerminal(state))
    return { ...context, taskIds: taskIds.slice(-idsPerContextMax), taskCount: all.length, busy }
  })
  const last = found[limit - 1]
  return found.length > limit && last !== undefined
    ? { items, nextCursor: cursors.seal('contexts', owner, positionOf(last)) }
    : { items }
}

const positionOf = ({ updatedAt, id }: ContextRecord) => `${updatedAt} ${id}`
