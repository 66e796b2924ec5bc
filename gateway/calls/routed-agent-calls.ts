import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { AuthenticatedCaller } from '@parley/kit/auth/authenticate'
import type { ReadFrame, SendAnswer } from '@parley/wire/codecs/codec'
import type { PaymentPurpose } from '@parley/wire/codecs/parley/payments'
import { ParleyError } from '@parley/wire/errors'
import type { SendMessage } from '@parley/wire/model/call'
import type { PaymentSession } from '@parley/wire/model/payment'
import { contextOf, isResting, type Task } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import { uuidPattern } from '@parley/wire/model/uuid'
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
/** The delays between two reads of a task whose agent answered too early or cannot stream. */
const [pollMs, pollMaxMs] = [100, 2000]
/** The number of times in a row that a stream is opened again before its error is thrown. */
const reopenMax = 5

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
    return { ...sent, task: await this.#resting(sent, { until, signal }) }
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
    else yield* this.follow({ taskId: sent.task.id, agent: sent.agent }, { signal })
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
    for (let failures = 0; failures <= reopenMax; failures += 1) {
      if (failures > 0) await pause(Math.min(pollMs * 2 ** failures, pollMaxMs), undefined, { signal })
      try {
        const { taskId, agent } = address
        let isFirst = true
        for await (const { frame } of streamFromAgent(
          this.#sender,
          'resubscribe',
          { taskId },
          { agent, signal },
        )) {
          failures = 0
          // The events before the stream began are in the task.
          const change = isFirst
            ? { kind: 'task' as const, task: await this.getTask(address, { signal }) }
            : changeOf(frame)
          isFirst = false
          yield change
          if (hasRested(change)) return
        }
      } catch (error) {
        if (isWithoutStreams(error)) break
        if (!isInterruption(error) || failures === reopenMax) throw error
      }
    }
    yield* this.#polled(address, signal)
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
    frame: Exclude<ReadFrame, { kind: 'error' }>,
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
    yield* this.#polled({ taskId: sent.task.id, agent: sent.agent }, signal)
  }

  /** Reads the task until it rests, and yields it when it has changed. */
  async *#polled(address: TaskAddress, signal: AbortSignal | undefined): AsyncGenerator<TaskChange> {
    let seen = ''
    for (let delayMs = pollMs; ; delayMs = Math.min(2 * delayMs, pollMaxMs)) {
      await pause(delayMs, undefined, { signal })
      const task = await this.getTask(address, { signal })
      const { state, timestamp: at } = task.status
      const state_ = `${state} ${at} ${task.artifacts.length}`
      if (state_ !== seen) yield { kind: 'task', task }
      seen = state_
      if (isResting(state)) return
    }
  }

  async #resting(
    { task, agent }: SentTask,
    { until, signal }: { until: number; signal: AbortSignal | undefined },
  ): Promise<Task> {
    let current = task
    for (let delayMs = pollMs; ; delayMs = Math.min(2 * delayMs, pollMaxMs)) {
      const leftMs = until - Date.now()
      if (leftMs <= 0) return current
      await pause(Math.min(delayMs, leftMs), undefined, { signal })
      current = await this.getTask({ taskId: task.id, agent }, { signal })
      if (isResting(current.status.state)) return current
    }
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

/** Returns the task of an answer. An external agent may answer with a message only, so its task has ended. */
function taskOf(answer: SendAnswer): Task {
  if (answer.kind === 'task') return answer.task
  const { message } = answer
  return {
    id: uuidPattern.test(message.taskId) ? message.taskId : randomUUID(),
    ...contextOf(message),
    status: { state: 'completed', timestamp: timestamp(), message },
    history: [],
    artifacts: [],
    answersByMessage: true,
  }
}

function changeOf(frame: Exclude<ReadFrame, { kind: 'error' }>): TaskChange {
  if (frame.kind === 'task' || frame.kind === 'message') return { kind: 'task', task: taskOf(frame) }
  const { taskId } = frame
  if (frame.kind === 'status-update') return { kind: 'status', taskId, status: frame.status }
  const { artifact, append, lastChunk: last } = frame
  const { artifactId, parts, name } = artifact
  return { kind: 'artifact', taskId, artifactId, name, parts, append, last }
}

function hasRested(change: TaskChange): boolean {
  if (change.kind === 'artifact') return false
  return isResting((change.kind === 'task' ? change.task.status : change.status).state)
}

function isWithoutStreams(error: unknown): boolean {
  return (
    error instanceof ParleyError &&
    (error.error === 'UnsupportedOperation' || error.error === 'MethodNotFound')
  )
}

/** Whether the task may continue, although its stream has ended. */
function isInterruption(error: unknown): boolean {
  return error instanceof ParleyError && error.error === 'Unavailable'
}

const noTask = () =>
  new ParleyError('InvalidAgentResponse', { message: 'The agent answered without a valid task' })
