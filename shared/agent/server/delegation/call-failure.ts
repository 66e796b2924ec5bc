import { ConnectionError, RpcError } from '@parley/client/internal/rpc-error'
import { isTerminal, type Part, type Task } from '@parley/wire/model/task'
import type { CallMessage, CallResult } from '../../author/agents.ts'
import { dataOf, textOf } from '../../author/build-context.ts'
import {
  AgentCallError,
  AgentFailedError,
  AgentNotFoundError,
  AgentUnavailableError,
  AuthorityEndedError,
  CallDeadlineError,
  CallRefusedError,
  type FailedCall,
  InputRequiredError,
  PaymentRequiredError,
} from '../../author/call-errors.ts'
import { ExchangeRefusedError } from './exchanged-tokens.ts'

const textMax = 1000
const nameOf = (agent: string) => (agent === '-' ? 'The chosen agent' : `Agent ${agent}`)

/** Returns the author's error for a failed request to an agent. */
export function callError(error: unknown, call: FailedCall): unknown {
  const failed = { ...call, cause: error }
  if (error instanceof AgentCallError) return error
  if (error instanceof ExchangeRefusedError) return authorityEnded(error.message, failed)
  if (error instanceof RpcError) return rpcFailure(error, failed)
  if (error instanceof ConnectionError || (error instanceof Error && error.name !== 'AbortError'))
    return new AgentUnavailableError(`${nameOf(call.agent)} could not be reached. Try again later.`, failed)
  return error
}

function authorityEnded(why: string, failed: FailedCall): AuthorityEndedError {
  return new AuthorityEndedError(
    `This agent may no longer call other agents for the client of this task: ${trimmed(why)}. The client must send its message again`,
    failed,
  )
}

function rpcFailure(error: RpcError, failed: FailedCall): AgentCallError {
  const { code: rpcCode, status, data, message } = error
  const who = nameOf(failed.agent)
  const text = trimmed(message)
  if (status === 402) {
    return new PaymentRequiredError(`${who} requires a payment: ${text}`, { ...failed, requirements: data })
  }
  if (status === 401) return authorityEnded(text, failed)
  if (rpcCode === -32040 && data['reason'] === 'agent')
    return new AgentNotFoundError(`There is no agent "${failed.agent}" at the gateway`, failed)
  if (failed.agent === '-' && rpcCode === -32004)
    return new AgentNotFoundError(`No agent of the gateway fits the message: ${text}`, failed)
  if ([429, 502, 503, 504].includes(status))
    return new AgentUnavailableError(`${who} is unavailable: ${text}`, failed)
  return new CallRefusedError(`${who} refused the message: ${text}`, { ...failed, rpcCode, data })
}

/** Whether the error shows that the message created no task. */
export function createdNothing(error: unknown): boolean {
  if (!(error instanceof RpcError)) return error instanceof ExchangeRefusedError
  return error.status >= 400 && error.status < 500 && error.status !== 408
}

export interface EndedCall {
  agent: string
  task: Task
  /** The parts of the status message. */
  prompt: Part[]
  /** When the agent's time ended, in milliseconds since 1970. */
  deadlineAt: number | undefined
  reply: (answer: CallMessage) => Promise<CallResult>
}

/** Returns the author's error for a task that paused, failed, was rejected or was canceled; undefined for a completed one. */
export function stateError({
  agent,
  task,
  prompt,
  deadlineAt,
  reply,
}: EndedCall): AgentCallError | undefined {
  const { state } = task.status
  const call = { agent, taskId: task.id }
  const text = trimmed(textOf(prompt))
  if (state === 'completed') return undefined
  if (state === 'payment-required')
    return new PaymentRequiredError(`Agent ${agent} requires a payment: ${text}`, {
      ...call,
      requirements: dataOf(prompt),
    })
  if (!isTerminal(state))
    return new InputRequiredError({
      ...call,
      state,
      question: textOf(prompt),
      data: dataOf(prompt),
      contextId: task.contextId,
      reply,
    })
  if (state === 'failed' && deadlineAt !== undefined && Date.now() >= deadlineAt)
    return new CallDeadlineError(`Agent ${agent} did not finish in time: ${text}`, call)
  return new AgentFailedError({ ...call, state, reason: text })
}

function trimmed(text: string): string {
  return text.slice(0, textMax).replace(/[.\s]+$/, '')
}
