import type { JsonObject, TaskState } from '@parley/wire/model/task'
import type { CallMessage, CallResult } from './agents.ts'

/** The call of another agent that failed. */
export interface FailedCall {
  /** The slug of the agent; `-` for the agent that the gateway chooses. */
  agent: string
  taskId?: string | undefined
  cause?: unknown
}

/** A call of another agent failed. If a handler does not catch the error, its task fails with the error's message. */
export class AgentCallError extends Error {
  /** The name of the error's class. */
  override readonly name: string = 'AgentCallError'
  /** The slug of the agent; `-` for the agent that the gateway chooses. */
  readonly agent: string
  /** The agent's task, if it is known. */
  readonly taskId: string | undefined

  constructor(message: string, { agent, taskId, cause }: FailedCall) {
    super(message, { cause })
    this.agent = agent
    this.taskId = taskId
  }
}

/** The agent has no gateway, or no OAuth client with which it could act for its callers. */
export class NoGatewayError extends AgentCallError {
  /** The name of the error's class. */
  override readonly name = 'NoGatewayError'
}

/** The gateway has no such agent, the client may not see it, or no agent fits the message. */
export class AgentNotFoundError extends AgentCallError {
  /** The name of the error's class. */
  override readonly name = 'AgentNotFoundError'
}

/** The gateway or the agent refused the message, for example by a policy or because the message is invalid. */
export class CallRefusedError extends AgentCallError {
  /** The name of the error's class. */
  override readonly name = 'CallRefusedError'
  /** The JSON-RPC error code, or 0. */
  readonly rpcCode: number
  /** Details of the error (docs/errors.md). */
  readonly data: Record<string, unknown>

  constructor(message: string, call: FailedCall & { rpcCode: number; data: Record<string, unknown> }) {
    super(message, call)
    this.rpcCode = call.rpcCode
    this.data = call.data
  }
}

/** The agent requires a payment, which an agent that acts for a client cannot make (spec/delegation.md#payments). */
export class PaymentRequiredError extends AgentCallError {
  /** The name of the error's class. */
  override readonly name = 'PaymentRequiredError'
  /** The x402 body or the data of the request for a payment: `accepts` lists the accepted payments. */
  readonly requirements: Record<string, unknown>

  constructor(message: string, call: FailedCall & { requirements: Record<string, unknown> }) {
    super(message, call)
    this.requirements = call.requirements
  }
}

/** The agent's task has paused for an answer. Answer it with `reply`, or pass the question on with `ask`. */
export class InputRequiredError extends AgentCallError {
  /** The name of the error's class. */
  override readonly name = 'InputRequiredError'
  /** The text of the agent's prompt. */
  readonly question: string
  /** The data of the prompt, for example the offer of a bid. */
  readonly data: JsonObject
  /** The state of the agent's task. */
  readonly state: TaskState
  /** The context of the agent's task, if it is known. */
  readonly contextId: string | undefined
  /** Continues the agent's task with an answer, and waits for the result like `call`. */
  readonly reply: (answer: CallMessage) => Promise<CallResult>

  constructor(
    call: FailedCall & Pick<InputRequiredError, 'question' | 'data' | 'state' | 'contextId' | 'reply'>,
  ) {
    super(`Agent ${call.agent} requires input: ${call.question}`, call)
    this.question = call.question
    this.data = call.data
    this.state = call.state
    this.contextId = call.contextId
    this.reply = call.reply
  }
}

/** The agent's task failed, was rejected or was canceled. */
export class AgentFailedError extends AgentCallError {
  /** The name of the error's class. */
  override readonly name = 'AgentFailedError'
  /** The final state of the agent's task. */
  readonly state: 'failed' | 'rejected' | 'canceled'
  /** The agent's reason. Empty if it gave none. */
  readonly reason: string

  constructor(call: FailedCall & Pick<AgentFailedError, 'state' | 'reason'>) {
    const { agent, state, reason } = call
    const what =
      state === 'failed' ? 'failed' : state === 'rejected' ? 'rejected the task' : 'canceled the task'
    super(`Agent ${agent} ${what}${reason === '' ? '' : `: ${reason}`}`, call)
    this.state = state
    this.reason = reason
  }
}

/** The agent's task did not end within its time. */
export class CallDeadlineError extends AgentCallError {
  /** The name of the error's class. */
  override readonly name = 'CallDeadlineError'
}

/** This agent may no longer act for the client: its token was revoked, has expired, or was never given. */
export class AuthorityEndedError extends AgentCallError {
  /** The name of the error's class. */
  override readonly name = 'AuthorityEndedError'
}

/** Too many agents act for the client one after another, this agent twice among them, or this task made too many calls. */
export class CallLoopError extends AgentCallError {
  /** The name of the error's class. */
  override readonly name = 'CallLoopError'
}

/** The gateway or the agent does not respond or is overloaded. The call was repeated without success. */
export class AgentUnavailableError extends AgentCallError {
  /** The name of the error's class. */
  override readonly name = 'AgentUnavailableError'
}
