import { ParleyError } from '../jsonrpc/errors.ts'
import { isTerminal } from '../protocol/task.ts'
import type { Store } from '../store/store.ts'

/** @throws ParleyError TaskNotFound for a task that is not the caller's, UnsupportedOperation for one that has not ended */
export async function requireReferences(
  store: Store,
  owner: string,
  taskIds: readonly string[],
): Promise<void> {
  for (const taskId of taskIds) {
    const task = await store.findTask(taskId, owner)
    if (task === undefined) throw new ParleyError('TaskNotFound', { data: { taskId } })
    const { state } = task.status
    if (isTerminal(state)) continue
    throw new ParleyError('UnsupportedOperation', {
      message: 'A referenced task has not ended',
      data: { taskId, state },
    })
  }
}
