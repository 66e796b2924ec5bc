import { ParleyError } from '../jsonrpc/errors.ts'
import { contextsClear, contextsList, parseParams } from '../protocol/params.ts'
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
export async function clearContext({ store }: Services, call: Call): Promise<Answer> {
  const { contextId } = parseParams(contextsClear, call.params)
  const outcome = await store.clearContext(contextId, call.caller.id)
  if (outcome === 'absent') throw new ParleyError('ContextNotFound', { data: { contextId } })
  if (outcome === 'busy') throw new ParleyError('ContextNotCancelable', { data: { contextId } })
  return { result: { success: true, context_id: contextId, message: 'Context was cleared' } }
}
