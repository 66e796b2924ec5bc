import { setTimeout as delay } from 'node:timers/promises'
import { RpcError } from '@parley/client/internal/rpc-error'
import { taskDetail } from '@parley/wire/codecs/answers/operator/tasks'
import { isTerminal, taskStates } from '@parley/wire/model/task'
import type { Io } from '../terminal/io.ts'
import type { OperatorTask } from '../terminal/operator-task-axis.ts'
import { operatorApi, pathWith } from './operator-api.ts'
import type { ServerOptions } from './server-connection.ts'

const pollMs = 1000

/** Reads a task of any owner as the operator. @throws RpcError, CommandFailed */
export async function operatorTask(
  io: Io,
  { agent, ...options }: ServerOptions & { agent: string },
  taskId: string,
): Promise<OperatorTask> {
  const api = await operatorApi(io, options)
  const path = pathWith(`/operator/tasks/${taskId}`, { agent: agent === '-' ? undefined : agent })
  return api.send(taskDetail, path)
}

/** Reads a task that the caller does not own as the operator. @throws `thrown` if it is another error or there is no such task */
export async function unlessOwned(
  thrown: unknown,
  io: Io,
  options: ServerOptions & { agent: string },
  taskId: string,
): Promise<OperatorTask> {
  if (!isTaskNotFound(thrown)) throw thrown
  const hasNoTask = thrown instanceof RpcError && thrown.code === -32001
  return operatorTask(io, options, taskId).catch((error: unknown) => {
    throw hasNoTask ? thrown : error
  })
}

/** Whether the task belongs to another owner, does not exist, or was requested with a token that no agent accepts. */
export function isTaskNotFound(thrown: unknown): boolean {
  if (!(thrown instanceof RpcError)) return false
  return thrown.code === -32001 || (thrown.code === -32013 && thrown.data['reason'] === 'operator_token')
}

/** Returns the task after each change, until it ends or pauses. */
export async function* operatorTaskChanges(
  io: Io,
  options: ServerOptions & { agent: string },
  first: OperatorTask,
  signal: AbortSignal,
): AsyncGenerator<OperatorTask> {
  let task = first
  yield task
  while (!isAtRest(task)) {
    await delay(pollMs, undefined, { signal })
    const next = await operatorTask(io, { ...options, agent: first.agent }, first.task_id)
    if (next.events.length === task.events.length && next.state === task.state) continue
    task = next
    yield task
  }
}

function isAtRest({ state }: OperatorTask): boolean {
  const known = taskStates.find((one) => one === state)
  return known === undefined || isTerminal(known) || state.endsWith('-required')
}
