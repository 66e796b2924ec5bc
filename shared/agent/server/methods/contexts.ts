import type { Page, TaskRecord } from '@parley/engine/store/store'
import { contextsClear, contextsList, parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { isTerminal } from '@parley/wire/model/task'
import type { Answer, Call, Services } from './method.ts'
import { nextCursor } from './tasks.ts'

export async function listContexts({ store }: Services, call: Call): Promise<Answer> {
  const { limit, cursor } = parseParams(contextsList, call.params)
  const page = await store.listContexts({
    owner: call.caller.id,
    limit,
    ...(cursor === undefined ? {} : { cursor }),
  })
  const result = page.items.map((context) => ({
    context_id: context.id,
    kind: 'context',
    role: 'user',
    created_at: context.createdAt,
    updated_at: context.updatedAt,
    status: context.busy ? 'active' : 'idle',
    task_count: context.taskCount,
    task_ids: context.taskIds,
    tasks: context.taskIds,
  }))
  return { result, headers: nextCursor(page) }
}

/** Any task that has not ended: -32021. The cleared tasks are gone. */
export async function clearContext(services: Services, call: Call): Promise<Answer> {
  const { store } = services
  const { contextId } = parseParams(contextsClear, call.params)
  await endPayments(services, contextId, call.caller.id)
  const outcome = await store.clearContext(contextId, call.caller.id)
  if (outcome === 'absent') throw new ParleyError('ContextNotFound', { data: { contextId } })
  if (outcome === 'busy') throw new ParleyError('ContextNotCancelable', { data: { contextId } })
  return { result: { success: true, context_id: contextId, message: 'Context was cleared' } }
}

const tasksAtOnce = 100

/**
 * What was paid for tasks that are about to go is earned, or owed, before they go: a payment whose task is not there counts
 * as one that nothing was had for.
 */
async function endPayments({ store, payments }: Services, contextId: string, owner: string): Promise<void> {
  if (payments === undefined) return
  for (let page: Page<TaskRecord> | undefined; page === undefined || page.nextCursor !== undefined; ) {
    const behind = page?.nextCursor === undefined ? {} : { cursor: page.nextCursor }
    page = await store.listTasks({ owner, contextId, limit: tasksAtOnce, ...behind })
    for (const { status, payments: ids = [] } of page.items) {
      if (!isTerminal(status.state)) throw new ParleyError('ContextNotCancelable', { data: { contextId } })
      await payments.end(ids)
    }
  }
}
