import type { Page, TaskRecord } from '@parley/engine/store/store'
import { ParleyError } from '@parley/wire/errors'
import { isTerminal } from '@parley/wire/model/task'
import type { Run, Services } from './method.ts'

export const listContexts: Run<'listContexts'> = async ({ store }, call) => {
  const { limit, cursor } = call.params()
  const page = await store.listContexts({
    owner: call.caller.id,
    limit,
    ...(cursor === undefined ? {} : { cursor }),
  })
  return { result: page }
}

/**
 * Removes a context with its tasks (spec/methods.md#contextsclear).
 * @throws ParleyError ContextNotFound, ContextNotCancelable while one of its tasks has not ended
 */
export const clearContext: Run<'clearContext'> = async (services, call) => {
  const { store } = services
  const { contextId } = call.params()
  await endPayments(services, contextId, call.caller.id)
  const outcome = await store.clearContext(contextId, call.caller.id)
  if (outcome === 'absent') throw new ParleyError('ContextNotFound', { data: { contextId } })
  if (outcome === 'busy') throw new ParleyError('ContextNotCancelable', { data: { contextId } })
  return { result: { contextId } }
}

const tasksAtOnce = 100

/**
 * Records the tasks' payments as earned or refundable before the tasks are removed, because a payment without a task counts
 * as refundable.
 */
async function endPayments({ store, payments }: Services, contextId: string, owner: string): Promise<void> {
  if (payments === undefined) return
  for (let page: Page<TaskRecord> | undefined; page === undefined || page.nextCursor !== undefined; ) {
    const behind = page?.nextCursor === undefined ? {} : { cursor: page.nextCursor }
    page = await store.listTasks({ owner, contextId, limit: tasksAtOnce, ...behind })
    for (const { status, payments: ids = [] } of page.items) {
      if (!isTerminal(status.state)) throw new ParleyError('ContextNotCancelable', { data: { contextId } })
      await payments.reconcileEnded(ids)
    }
  }
}
