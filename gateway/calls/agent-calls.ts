import type { AuthenticatedCaller } from '@parley/kit/auth/authenticate'
import type { PaymentPurpose } from '@parley/wire/codecs/parley/payments'
import { ParleyError } from '@parley/wire/errors'
import type { IncomingMessage } from '@parley/wire/model/call'
import type { PaymentSession } from '@parley/wire/model/payment'
import type { JsonObject, Part, Task, TaskStatus } from '@parley/wire/model/task'
import type { FastifyRequest } from 'fastify'

/**
 * Calls agents for the interfaces of the gateway that are not A2A, such as MCP. A call passes the same checks as a
 * message to `POST /` or `POST /agents/{slug}/`: scopes, policies, quotas, prices and routes.
 */
export interface AgentCalls {
  /**
   * @param request the request that makes the calls; its disconnection does not cancel tasks
   * @param caller the authenticated caller; the interface has checked the token, including its audience
   */
  as(request: FastifyRequest, caller: AuthenticatedCaller): CallerCalls
}

/** The calls of one request. Each method throws the ParleyError that the same A2A call would receive. */
export interface CallerCalls {
  /**
   * Sends a message and returns the task when it has ended or paused, or after `waitMs` if it is still working.
   * @throws ParleyError, among others PaymentRequired for an unpaid message to a paid agent. Its `data` is the body of the
   * HTTP 402 (x402), and its header `payment-required` has the terms in version 2.
   */
  send(message: AgentMessage, options: WaitOptions): Promise<SentTask>
  /** Sends a message and yields its events: the task first, then changes until it has ended or paused. */
  stream(message: AgentMessage, options?: CallOptions): AsyncIterable<TaskChange>
  getTask(task: TaskAddress, options?: CallOptions): Promise<Task>
  /** Like `getTask`, with the slug of the agent that has the task. */
  findTask(task: TaskAddress, options?: CallOptions): Promise<FoundTask>
  cancelTask(task: TaskAddress, options?: CallOptions): Promise<Task>
  /** Returns the newest tasks of a context, newest first. */
  listTasks(tasks: ContextTasks, options?: CallOptions): Promise<Task[]>
  /** Yields the changes of a task from now on: the task first. */
  follow(task: TaskAddress, options?: CallOptions): AsyncIterable<TaskChange>
  /** Starts a payment session, which a person can pay on a page. */
  startPaymentSession(agent: string, purpose: PaymentPurpose): Promise<PaymentSession>
  findPaymentSession(agent: string, sessionId: string): Promise<PaymentSession>
}

export interface AgentMessage {
  /** The slug of the agent. If undefined, the gateway negotiates. */
  agent?: string | undefined
  /** The message. `metadata.skill_id` selects a skill; `metadata` also carries an x402 payment. */
  message: Omit<IncomingMessage, 'role' | 'messageId'> & { parts: Part[]; messageId?: string }
  acceptedOutputModes?: string[] | undefined
  /** Makes a repeated message return the first task. */
  idempotencyKey?: string | undefined
}

export interface TaskAddress {
  taskId: string
  /** The slug of its agent, if the interface names one. */
  agent?: string | undefined
}

export interface FoundTask {
  task: Task
  agent: string | undefined
}

export interface ContextTasks {
  contextId: string
  /** The slug of the agent. If undefined, the tasks of all agents. */
  agent?: string | undefined
  limit: number
}

export interface CallOptions {
  /** Stops waiting for the answer. It does not cancel the task. */
  signal?: AbortSignal | undefined
}

export interface WaitOptions extends CallOptions {
  /** The longest time to wait for the task, in milliseconds. 0 returns the stored task. */
  waitMs: number
}

export interface SentTask {
  task: Task
  /** The slug of the agent that has the task. */
  agent: string
  /** The id of the decision, if the gateway negotiated (`GET /negotiations/{id}`). */
  decisionId?: string | undefined
  /** The settlement of the payment that the message carried (x402, version 2). */
  receipt?: JsonObject | undefined
}

/** One event of a task. Deltas of artifacts append to the parts that the artifact already has if `append` is true. */
export type TaskChange =
  | ({ kind: 'task' } & Pick<SentTask, 'task'> & Partial<Omit<SentTask, 'task'>>)
  | { kind: 'status'; taskId: string; status: TaskStatus }
  | {
      kind: 'artifact'
      taskId: string
      artifactId: string
      name?: string
      parts: Part[]
      append: boolean
      last: boolean
    }

/** Returns undefined for the error of a task that does not exist, or that belongs to another caller. @throws other errors */
export function unlessMissing(error: unknown): undefined {
  if (error instanceof ParleyError && error.status === 404) return undefined
  throw error
}
