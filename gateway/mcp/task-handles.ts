import {
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { isPaused, type Task } from '@parley/wire/model/task'
import { z } from 'zod'
import type { CallerCalls } from '../calls/agent-calls.ts'
import { type ClientSupport, clientSupport, type Exchange, tasksExtension } from './exchange.ts'
import { answerOf, questionOf } from './pauses.ts'
import { paymentRequiredResult, paymentTerms } from './payments.ts'
import { type AgentTask, metaOf, questionResult, resultOfEndedTask, textOf } from './task-results.ts'

/** The methods of the extension io.modelcontextprotocol/tasks (spec/mcp.md#tasks). */
export const taskMethods = ['tasks/get', 'tasks/update', 'tasks/cancel'] as const
export type TaskMethod = (typeof taskMethods)[number]

/** How long a task is kept at least after its creation, in milliseconds. */
const ttlMs = 7 * 24 * 60 * 60 * 1000
const pollIntervalMs = 1000
/** How long the answer to some of several questions waits for the next pause, in milliseconds. */
const nextPauseMs = 2000

const taskParams = z.looseObject({ taskId: z.string().min(1).max(256) })

/** Returns the handle of a task for a call that does not wait any longer. */
export function createdTask(task: Task): Result {
  return { resultType: 'task', ...stateOf(task) }
}

/** @throws ProtocolError if the task does not exist or the client does not declare the extension */
export async function answerTaskMethod(
  method: TaskMethod,
  exchange: Exchange,
  params: unknown,
  context: ServerContext,
): Promise<Result> {
  const client = clientSupport(context, exchange)
  requireTasks(client)
  const { calls, agent } = exchange
  if (method === 'tasks/get') {
    const { taskId } = parseParams(taskParams, params)
    return detailOf(await found(calls.findTask({ taskId, agent })), client, calls)
  }
  if (method === 'tasks/cancel') {
    const { taskId } = parseParams(taskParams, params)
    await found(calls.cancelTask({ taskId, agent })).catch(acceptEnded)
    return {}
  }
  const { taskId } = parseParams(taskParams, params)
  const task = await found(calls.getTask({ taskId, agent }))
  // The library has taken the responses out of the parameters. Those to requests that are no longer open are ignored.
  const responses = context.mcpReq.inputResponses ?? {}
  const parts = isPaused(task.status.state) ? answerOf(task, responses) : undefined
  const waitMs = leavesOpen(task, responses) ? nextPauseMs : 0
  if (parts !== undefined) await calls.send({ agent, message: { parts, taskId } }, { waitMs })
  return {}
}

/** Whether the agent still has a question after these responses, so that the client finds the task paused again. */
function leavesOpen(task: Task, responses: Readonly<Record<string, unknown>>): boolean {
  const { requests } = questionOf(task, { form: true, url: true })
  return Object.keys(requests).some((key) => responses[key] === undefined)
}

function requireTasks({ tasks }: ClientSupport): void {
  if (tasks) return
  throw new MissingRequiredClientCapabilityError({
    requiredCapabilities: { extensions: { [tasksExtension]: {} } },
  })
}

async function found<T>(task: Promise<T>): Promise<T> {
  return task.catch((error: unknown) => {
    if (error instanceof ParleyError && error.error === 'TaskNotFound')
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Task not found')
    throw error
  })
}

/** A task that has ended cannot be canceled, which the client sees in its state. */
function acceptEnded(error: unknown): void {
  if (!(error instanceof ParleyError && error.error === 'TaskNotCancelable')) throw error
}

/** Returns the task as `tasks/get` does: with its result, its error or its open requests. */
async function detailOf(
  sent: AgentTask,
  { elicitation }: ClientSupport,
  calls: CallerCalls,
): Promise<Result> {
  const { task } = sent
  const { state, message } = task.status
  const handle = stateOf(task)
  if (state === 'failed') {
    const reason = textOf(message?.parts ?? []) || 'The agent failed'
    return {
      ...handle,
      statusMessage: reason,
      error: { code: ProtocolErrorCode.InternalError, message: reason },
    }
  }
  const terms = state === 'payment-required' ? await paymentTerms(sent, calls) : undefined
  if (terms !== undefined) {
    const charge = { terms, taskId: task.id, meta: metaOf(sent) }
    return { ...handle, status: 'completed', result: paymentRequiredResult(charge) }
  }
  if (isPaused(state)) {
    const { text, requests } = questionOf(task, elicitation)
    if (Object.keys(requests).length > 0) return { ...handle, statusMessage: text, inputRequests: requests }
    // The client cannot show the question, so the call ends with it. The task itself keeps waiting.
    return { ...handle, status: 'completed', result: questionResult(sent, text) }
  }
  if (handle.status === 'completed') return { ...handle, result: resultOfEndedTask(sent) }
  return handle
}

const statuses = {
  submitted: 'working',
  working: 'working',
  'input-required': 'input_required',
  'auth-required': 'input_required',
  'payment-required': 'input_required',
  'negotiation-bid-submitted': 'input_required',
  completed: 'completed',
  rejected: 'completed',
  failed: 'failed',
  canceled: 'cancelled',
} as const satisfies Record<Task['status']['state'], string>

function stateOf({ id, status }: Task) {
  const text = status.state === 'working' ? textOf(status.message?.parts ?? []) : ''
  const at = new Date(status.timestamp).toISOString()
  return {
    taskId: id,
    status: statuses[status.state],
    ...(text !== '' && { statusMessage: text }),
    createdAt: at,
    lastUpdatedAt: at,
    ttlMs,
    pollIntervalMs,
  }
}
