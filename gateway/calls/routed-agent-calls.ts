import { randomUUID } from 'node:crypto'
import type { AuthenticatedCaller } from '@parley/kit/auth/authenticate'
import type { PaymentPurpose } from '@parley/wire/codecs/parley/payments'
import type { SendMessage } from '@parley/wire/model/call'
import type { PaymentSession } from '@parley/wire/model/payment'
import { contextOf, isResting, type Task } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import type { FastifyRequest } from 'fastify'
import type {
  AgentCalls,
  AgentMessage,
  CallerCalls,
  CallOptions,
  ContextTasks,
  FoundTask,
  SentTask,
  TaskAddress,
  TaskChange,
  WaitOptions,
} from './agent-calls.ts'
import type { InnerRequests, RequestSender } from './inner-requests.ts'
import { interfaceCaller } from './interface-caller.ts'
import { findPaymentSession, startPaymentSession } from './payment-sessions.ts'
import { callAgent, type Routed, streamFromAgent } from './rpc-calls.ts'
import {
  changeOf,
  hasRested,
  isInterruption,
  isWithoutStreams,
  noTask,
  type TaskFrame,
  TaskReader,
  taskOf,
} from './task-changes.ts'

export interface RoutedAgentCallsOptions {
  requests: InnerRequests
  gatewayUrl: string
}

/** Calls agents through the routes of the gateway. */
export class RoutedAgentCalls implements AgentCalls {
  readonly #options: RoutedAgentCallsOptions

  constructor(options: RoutedAgentCallsOptions) {
    this.#options = options
  }

  as(request: FastifyRequest, caller: AuthenticatedCaller): CallerCalls {
    const { requests, gatewayUrl } = this.#options
    return new RequestCalls(requests.of(request, interfaceCaller(caller, gatewayUrl)))
  }
}

/** How much longer than its caller an agent may wait before it counts as silent. */
const graceMs = 15_000
class RequestCalls implements CallerCalls {
  readonly #sender: RequestSender

  constructor(sender: RequestSender) {
    this.#sender = sender
  }

  async send(message: AgentMessage, { waitMs, signal }: WaitOptions): Promise<SentTask> {
    const until = Date.now() + waitMs
    const { agent, idempotencyKey } = message
    const maxMs = waitMs === 0 ? undefined : waitMs + graceMs
    const options = { agent, idempotencyKey, signal, maxMs }
    const params = paramsOf(message, waitMs)
    const { result, routed, dialect } = await callAgent(this.#sender, 'sendMessage', params, options)
    const answer = dialect.readSendResult(result)
    if (answer === undefined) throw noTask()
    const sent = { ...sentBy(routed), task: taskOf(answer) }
    if (isResting(sent.task.status.state) || answer.kind === 'message') return sent
    // External agents do not wait.
    return { ...sent, task: await this.#reader(sent, signal).resting(sent.task, until) }
  }

  async *stream(message: AgentMessage, { signal }: CallOptions = {}): AsyncGenerator<TaskChange> {
    const { agent, idempotencyKey } = message
    const frames = streamFromAgent(this.#sender, 'streamMessage', paramsOf(message, 0), {
      agent,
      idempotencyKey,
      signal,
    })
    let sent: SentTask | undefined
    try {
      for await (const { frame, routed } of frames) {
        if (sent === undefined) {
          sent = await this.#begun(frame, routed, { message, signal })
          yield { kind: 'task', ...sent }
          if (frame.kind === 'status-update' || frame.kind === 'task' || frame.kind === 'message') {
            if (isResting(sent.task.status.state)) return
            continue
          }
        }
        const change = changeOf(frame)
        yield change
        if (hasRested(change)) return
      }
    } catch (error) {
      const mayContinue = sent === undefined ? isWithoutStreams(error) : isInterruption(error)
      if (!mayContinue) throw error
    }
    if (sent === undefined) yield* this.#withoutStream(message, signal)
    else yield* this.#reader(sent, signal).changes()
  }

  async getTask(address: TaskAddress, options?: CallOptions): Promise<Task> {
    return (await this.findTask(address, options)).task
  }

  findTask(address: TaskAddress, { signal }: CallOptions = {}): Promise<FoundTask> {
    return this.#task('getTask', address, signal)
  }

  async cancelTask(address: TaskAddress, { signal }: CallOptions = {}): Promise<Task> {
    return (await this.#task('cancelTask', address, signal)).task
  }

  async listTasks({ contextId, agent, limit }: ContextTasks, { signal }: CallOptions = {}): Promise<Task[]> {
    const options = { agent, signal }
    const { result, dialect } = await callAgent(this.#sender, 'listTasks', { contextId, limit }, options)
    const tasks = Array.isArray(result) ? result : []
    return tasks.flatMap((task: unknown) => dialect.readTask(task) ?? [])
  }

  startPaymentSession(agent: string, purpose: PaymentPurpose): Promise<PaymentSession> {
    return startPaymentSession(this.#sender, agent, purpose)
  }

  findPaymentSession(agent: string, sessionId: string): Promise<PaymentSession> {
    return findPaymentSession(this.#sender, agent, sessionId)
  }

  async *follow(address: TaskAddress, { signal }: CallOptions = {}): AsyncGenerator<TaskChange> {
    const { task: first, agent: slug } = await this.findTask(address, { signal })
    yield { kind: 'task', task: first, ...(slug !== undefined && { agent: slug }) }
    if (isResting(first.status.state)) return
    yield* new TaskReader(this.#sender, { ...address, agent: slug }, signal).changes()
  }

  async #task(
    operation: 'getTask' | 'cancelTask',
    { taskId, agent }: TaskAddress,
    signal: AbortSignal | undefined,
  ): Promise<FoundTask> {
    const options = { agent, signal }
    const { result, routed, dialect } = await callAgent(this.#sender, operation, { taskId }, options)
    const task = dialect.readTask(result)
    if (task === undefined) throw noTask()
    return { task, agent: routed.agent }
  }

  /** Returns the task to which the first frame of a stream belongs. */
  async #begun(
    frame: TaskFrame,
    routed: Routed,
    { message, signal }: { message: AgentMessage; signal: AbortSignal | undefined },
  ): Promise<SentTask> {
    const sent = sentBy(routed)
    if (frame.kind === 'task' || frame.kind === 'message') return { ...sent, task: taskOf(frame) }
    const { taskId } = frame
    // A continued task has earlier artifacts.
    if (message.message.taskId !== undefined)
      return { ...sent, task: await this.getTask({ taskId, agent: sent.agent }, { signal }) }
    const status =
      frame.kind === 'status-update' ? frame.status : { state: 'working' as const, timestamp: timestamp() }
    return { ...sent, task: { id: taskId, ...contextOf(frame), status, history: [], artifacts: [] } }
  }

  /** Sends the message to an agent that cannot stream. */
  async *#withoutStream(message: AgentMessage, signal: AbortSignal | undefined): AsyncGenerator<TaskChange> {
    const sent = await this.send(message, { waitMs: 0, signal })
    yield { kind: 'task', ...sent }
    if (isResting(sent.task.status.state)) return
    yield* this.#reader(sent, signal).changes()
  }

  #reader({ task: { id: taskId }, agent }: SentTask, signal: AbortSignal | undefined): TaskReader {
    return new TaskReader(this.#sender, { taskId, agent }, signal)
  }
}

function paramsOf({ message, acceptedOutputModes }: AgentMessage, waitMs: number): SendMessage {
  return {
    message: { ...message, role: 'user', messageId: message.messageId ?? randomUUID() },
    configuration: { acceptedOutputModes, ...(waitMs > 0 && { waitMs: Math.ceil(waitMs) }) },
  }
}

function sentBy({ agent = '', decisionId, receipt }: Routed): Omit<SentTask, 'task'> {
  return { agent, ...(decisionId !== undefined && { decisionId }), ...(receipt !== undefined && { receipt }) }
}
