import { ParleyError } from '@parley/wire/errors'
import { isTerminal, type Task } from '@parley/wire/model/task'
import type { Call, Services } from './method.ts'

/** Limits on the other agents' tasks that a message refers to: their number, their total output and the time to read them. */
const foreignMax = 10
const foreignMaxBytes = 8 * 1024 * 1024
const foreignMaxMs = 10_000

/**
 * Checks the referenced tasks (spec/tasks.md#references) and returns those of other agents, read through the gateway. Their
 * output is then stored with the new task.
 * @throws ParleyError TaskNotFound for another owner's task or one that cannot be read, UnsupportedOperation for one
 * that has not ended
 */
export async function readReferences(
  { store, foreignTasks }: Pick<Services, 'store' | 'foreignTasks'>,
  call: Call,
  taskIds: readonly string[],
): Promise<Task[]> {
  const missing: string[] = []
  for (const taskId of new Set(taskIds)) {
    // Only the state is needed, so no memory is reserved.
    const outline = await store.outlineTask(taskId, call.caller.id, () => {})
    if (outline === undefined) missing.push(taskId)
    else requireEnded(outline.task)
  }
  const [first] = missing
  if (first === undefined) return []
  if (foreignTasks === undefined || missing.length > foreignMax) throw notFound(first)
  const foreign: Task[] = []
  const signal = AbortSignal.any([call.signal(), AbortSignal.timeout(foreignMaxMs)])
  let maxBytes = foreignMaxBytes
  for (const taskId of missing) {
    const read = await foreignTasks.read(taskId, call.headers, { maxBytes, signal })
    if (read === undefined) throw notFound(taskId)
    requireEnded(read.task)
    maxBytes -= read.bytes
    foreign.push(read.task)
  }
  return foreign
}

function requireEnded({ id, status: { state } }: Task): void {
  if (isTerminal(state)) return
  throw new ParleyError('UnsupportedOperation', {
    message: 'A referenced task has not ended',
    data: { taskId: id, state },
  })
}

const notFound = (taskId: string) => new ParleyError('TaskNotFound', { data: { taskId } })
