import { RpcError } from '@parley/client/internal/rpc-error'
import type { ChildTask, Delegation as TaskDelegation } from '@parley/engine/store/store'
import { inSpan, type Span, type SpanOptions, tracing } from '@parley/kit/telemetry/tracing'
import { positionOf } from '@parley/wire/codecs/parley/events'
import { isTerminal } from '@parley/wire/model/task'
import type { Agents, CallEvent, CallMessage, CallOptions, CallResult } from '../../author/agents.ts'
import {
  AgentCallError,
  AuthorityEndedError,
  CallDeadlineError,
  CallLoopError,
  CallRefusedError,
} from '../../author/call-errors.ts'
import type { CallingRun, RunCalls } from '../../author/delegation.ts'
import type { AgentConnection, OutgoingParams, SentMessage } from './agent-connection.ts'
import { callError, createdNothing, stateError } from './call-failure.ts'
import {
  artifactEvent,
  artifactUpdate,
  readAnswer,
  replyEvent,
  resultOf,
  statusUpdate,
} from './call-result.ts'
import { callIds, messageOf } from './outgoing-message.ts'

export interface AgentCallsParts {
  run: CallingRun
  /** The agent's OAuth client, which acts for the client of the task. */
  clientId: string
  /** Makes the IDs of calls unguessable. */
  secret: Uint8Array
  /** Undefined if the task has no token that this agent may exchange. */
  connection: AgentConnection | undefined
}

/** The number of calls that a task may make. */
export const childrenMax = 100
/** The number of agents that may act for a client one after another (spec/delegation.md#chains). */
const chainMax = 5
/** An agent ends a task at its deadline. The caller waits a little longer for the reason. */
const deadlineGraceMs = 2000
/** The maximum delay that a timer supports, and the longest deadline. */
const timerMaxMs = 2_147_483_647
const cancelTimeoutMs = 5000
const slugForm = /^[a-z0-9][a-z0-9-]{0,127}$/

/** One call, before its message is sent. */
interface Prepared {
  connection: AgentConnection
  /** Undefined: the gateway chooses the agent. */
  agent: string | undefined
  child: ChildTask
  /** False if an earlier run of the handler made the same call. */
  isNew: boolean
  params: OutgoingParams
  headers: Record<string, string>
  /** Aborted when the run ends, the author stops waiting, or the time of the call is over. */
  signal: AbortSignal
  options: CallOptions
  deadlineAt: number | undefined
}

/** The calls that one run of a handler makes (spec/delegation.md#calls). */
export class AgentCalls implements RunCalls {
  readonly agents: Agents
  children: ChildTask[]
  readonly #parts: AgentCallsParts
  /** Calls of which an earlier attempt may have created the task, although a later one was refused. */
  readonly #repeated = new WeakSet<Prepared>()
  /** The number of equal calls so far. */
  readonly #repeats = new Map<string, number>()

  constructor(parts: AgentCallsParts) {
    this.#parts = parts
    this.children = [...(parts.run.task.children ?? [])]
    const links = () =>
      this.children.flatMap(({ agent, taskId }) =>
        agent === undefined || taskId === undefined ? [] : [{ agent, taskId }],
      )
    this.agents = {
      call: (agent, message, options) => handled(this.#call(agent, message, options)),
      best: (message, options) => handled(this.#call(undefined, message, options)),
      stream: (agent, message, options) => this.#stream(agent, message, options),
      get children() {
        return links()
      },
    }
  }

  #call(agent: string | undefined, message: CallMessage, options: CallOptions = {}): Promise<CallResult> {
    return inSpan('invoke_agent', callSpan(agent), (span) => this.#callIn(span, agent, message, options))
  }

  async #callIn(
    span: Span,
    agent: string | undefined,
    message: CallMessage,
    options: CallOptions,
  ): Promise<CallResult> {
    const call = await this.#prepare(agent, message, options, span)
    try {
      const sent = await this.#send(call)
      const answer = readAnswer(sent.result)
      if (answer === undefined) throw unreadable(agent ?? '-')
      if ('message' in answer) {
        await this.#forget(call.child)
        return resultOf(sent.agent ?? '-', answer)
      }
      const at = { agent: sent.agent ?? '-', taskId: answer.task.id }
      span.set({ 'gen_ai.agent.name': at.agent, 'parley.task.id': at.taskId })
      if (sent.agent === undefined) throw unreadable('-')
      if (call.child.taskId !== at.taskId || call.child.agent !== at.agent) await this.#note(call.child, at)
      return await this.#resultOf(call, at)
    } catch (error) {
      throw this.#failed(call, error)
    }
  }

  async *#stream(
    agent: string,
    message: CallMessage,
    options: CallOptions = {},
  ): AsyncGenerator<CallEvent, void, void> {
    // The steps of a generator run in the context of its reader.
    const span = tracing()?.start('invoke_agent', callSpan(agent))
    try {
      yield* this.#streamIn(span, agent, message, options)
    } catch (error) {
      span?.fail(error instanceof Error ? error.name : 'Error')
      throw error
    } finally {
      span?.end()
    }
  }

  async *#streamIn(
    span: Span | undefined,
    agent: string,
    message: CallMessage,
    options: CallOptions,
  ): AsyncGenerator<CallEvent, void, void> {
    const call = await this.#prepare(agent, message, options, span)
    const { connection, params, headers, signal, child } = call
    try {
      const opened = await connection
        .stream(agent, params, { headers, signal, onRepeat: () => this.#repeated.add(call) })
        .catch(async (error: unknown) => {
          if (!isWithoutStreams(error)) throw await this.#refused(call, error)
          return undefined
        })
      if (opened === undefined) {
        const { result } = await this.#send(call)
        const answer = readAnswer(result)
        if (answer === undefined || !('task' in answer)) throw unreadable(agent)
        const ended = await this.#resultOf(call, { agent, taskId: answer.task.id })
        for (const artifact of ended.artifacts) yield artifactEvent(answer.task.id, artifact)
        const reply = replyEvent(ended)
        if (reply !== undefined) yield reply
        return
      }
      const { first, rest } = opened
      let taskId = child.taskId ?? ''
      try {
        for (let step = first; step.done !== true; step = await rest.next()) {
          const event = step.value
          taskId = positionOf(event).taskId
          yield event.kind === 'status-update' ? statusUpdate(event) : artifactUpdate(event)
        }
      } finally {
        await rest.return(undefined)
      }
      const reply = replyEvent(await this.#resultOf(call, { agent, taskId }))
      if (reply !== undefined) yield reply
    } catch (error) {
      throw this.#failed(call, error)
    }
  }

  #send(call: Prepared): Promise<SentMessage> {
    const { connection, agent, params, headers, signal } = call
    return connection
      .send(agent, params, { headers, signal, onRepeat: () => this.#repeated.add(call) })
      .catch(async (error: unknown) => {
        throw await this.#refused(call, error)
      })
  }

  /** A call that created no task is removed from the list. */
  async #refused(call: Prepared, error: unknown): Promise<unknown> {
    const { isNew, options, child } = call
    if (isNew && !this.#repeated.has(call) && options.taskId === undefined && createdNothing(error))
      await this.#forget(child).catch(() => {})
    return error
  }

  /** Checks that the call is allowed and records it with the task, before anything is sent. */
  async #prepare(
    agent: string | undefined,
    message: CallMessage,
    options: CallOptions,
    span: Span | undefined,
  ): Promise<Prepared> {
    const { run, secret } = this.#parts
    const name = agent ?? '-'
    run.signal.throwIfAborted()
    options.signal?.throwIfAborted()
    const connection = this.#connection(name)
    this.#requireShortChain(name)
    if (agent !== undefined && !slugForm.test(agent))
      throw new CallRefusedError(
        `"${agent.slice(0, 100)}" is not the slug of an agent: it may contain a-z, 0-9 and -`,
        {
          agent: name,
          rpcCode: 0,
          data: {},
        },
      )
    const { task } = run
    const ancestors = { parentTaskId: task.id, rootTaskId: task.rootTaskId ?? task.id }
    const content = messageOf(message, options, ancestors)
    const { acceptedOutputModes } = options
    const modes = acceptedOutputModes && { acceptedOutputModes: [...acceptedOutputModes] }
    const same = JSON.stringify([agent, content, modes])
    const repeat = this.#repeats.get(same) ?? 0
    this.#repeats.set(same, repeat + 1)
    const ids = callIds(secret, task.id, task.history.length, same, repeat)
    await connection.requireAuthority().catch((error: unknown) => {
      throw callError(error, { agent: name })
    })
    const isNew = !this.children.some(({ key }) => key === ids.key)
    const child = await this.#noteCall(ids, agent, options)
    const taskId = options.taskId ?? ids.taskId
    const deadline = child.deadlineMs === undefined ? {} : { deadlineMs: child.deadlineMs }
    const deadlineAt = child.deadlineMs === undefined ? undefined : Date.now() + child.deadlineMs
    const limits = [run.signal, ...(options.signal === undefined ? [] : [options.signal])]
    if (child.deadlineMs !== undefined)
      limits.push(AbortSignal.timeout(Math.min(child.deadlineMs + deadlineGraceMs, timerMaxMs)))
    return {
      connection,
      agent,
      child,
      isNew,
      params: {
        message: { ...content, messageId: ids.messageId, taskId },
        configuration: { ...modes, ...deadline },
      },
      headers: { 'idempotency-key': ids.key, ...(tracing() === undefined ? task.trace : span?.context) },
      signal: AbortSignal.any(limits),
      options,
      deadlineAt,
    }
  }

  #connection(agent: string): AgentConnection {
    const { connection } = this.#parts
    if (connection !== undefined) return connection
    throw new AuthorityEndedError(
      'The message arrived without a token that this agent may exchange, so it cannot call other agents: send the message through the gateway, or with a token that names this agent as its audience',
      { agent },
    )
  }

  #requireShortChain(agent: string): void {
    const { run, clientId } = this.#parts
    const direct: Pick<TaskDelegation, 'subject' | 'agents'> = { subject: run.task.owner, agents: [] }
    const { subject, agents } = run.task.delegation ?? direct
    if (agents.includes(clientId) || subject === clientId)
      throw new CallLoopError('This agent already acts for the client in this chain of calls', { agent })
    if (agents.length >= chainMax)
      throw new CallLoopError(`At most ${chainMax} agents may act for a client one after another`, { agent })
  }

  /** Records the call, unless an earlier run of the handler has made it. */
  async #noteCall(
    { key, taskId }: { key: string; taskId: string },
    agent: string | undefined,
    options: CallOptions,
  ): Promise<ChildTask> {
    const known = this.children.find((child) => child.key === key)
    if (known !== undefined) return known
    const deadlineMs = this.#remainingMs(options)
    const child: ChildTask = {
      key,
      taskId: options.taskId ?? taskId,
      ...(agent !== undefined && { agent }),
      ...(deadlineMs !== undefined && { deadlineMs }),
      ...(options.detach === true && { detached: true }),
    }
    // A message that continues a task replaces the entry of the task.
    const others = this.children.filter(
      (one) => options.taskId === undefined || one.taskId !== options.taskId,
    )
    if (others.length >= childrenMax)
      throw new CallLoopError(`A task may call other agents at most ${childrenMax} times`, {
        agent: agent ?? '-',
      })
    await this.#save([...others, child])
    return child
  }

  /** The time that the agent's task may take; undefined without a limit. */
  #remainingMs({ deadlineMs = timerMaxMs }: CallOptions): number | undefined {
    const { deadlineAt } = this.#parts.run
    const left = deadlineAt === undefined ? timerMaxMs : deadlineAt - Date.now()
    const limit = Math.max(1, Math.floor(Math.min(left, deadlineMs)))
    return limit < timerMaxMs ? limit : undefined
  }

  async #note({ key }: ChildTask, at: { agent: string; taskId: string }): Promise<void> {
    await this.#save(this.children.map((child) => (child.key === key ? { ...child, ...at } : child)))
  }

  async #forget({ key }: ChildTask): Promise<void> {
    await this.#save(this.children.filter((child) => child.key !== key))
  }

  /** Concurrent calls change the list before it is stored, so each save stores the newest list. */
  async #save(children: ChildTask[]): Promise<void> {
    this.children = children
    await this.#parts.run.save(children)
  }

  async #resultOf(call: Prepared, at: { agent: string; taskId: string }): Promise<CallResult> {
    const { connection, signal, deadlineAt, child, headers } = call
    const { 'idempotency-key': _, ...trace } = headers
    const answer = readAnswer(await connection.result(at.agent, at.taskId, { signal, headers: trace }))
    if (answer === undefined || !('task' in answer)) throw unreadable(at.agent)
    const { task, prompt } = answer
    // Stored with the next change of this task.
    if (isTerminal(task.status.state))
      this.children = this.children.map((one) => (one.key === child.key ? { ...one, ended: true } : one))
    const reply = (message: CallMessage) =>
      this.agents.call(at.agent, message, {
        ...detachOf(call.options),
        taskId: at.taskId,
        contextId: task.contextId,
      })
    const error = stateError({ agent: at.agent, task, prompt, deadlineAt, reply })
    if (error !== undefined) throw error
    return resultOf(at.agent, answer)
  }

  /** Returns the error for the author. */
  #failed(call: Prepared, error: unknown): unknown {
    const { run } = this.#parts
    const { child, signal, options } = call
    const failed = { agent: call.agent ?? '-', taskId: child.taskId }
    if (run.signal.aborted) return run.signal.reason
    if (signal.aborted) {
      if (!child.detached) void this.#cancel(call)
      if (options.signal?.aborted === true) return options.signal.reason
      return new CallDeadlineError(`Agent ${failed.agent} did not finish in time`, failed)
    }
    return callError(error, failed)
  }

  /** Cancels a task that the author no longer waits for. If this fails, it is canceled when this task ends. */
  async #cancel({ connection, child }: Prepared): Promise<void> {
    const { key, agent, taskId } = this.children.find((one) => one.key === child.key) ?? child
    if (taskId === undefined) return
    await connection.cancel(agent, { taskId, key }, AbortSignal.timeout(cancelTimeoutMs)).catch(() => {})
  }
}

/** The name of an agent is an attribute: authors may take it from a model. */
const callSpan = (agent: string | undefined): SpanOptions => ({
  kind: 'client',
  attributes: { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': agent },
})

/** An author may ignore a call's outcome, so its failure must not end the process. */
function handled<T>(call: Promise<T>): Promise<T> {
  call.catch(() => {})
  return call
}

function detachOf({ detach }: CallOptions): Pick<CallOptions, 'detach'> {
  return detach === undefined ? {} : { detach }
}

function isWithoutStreams(error: unknown): boolean {
  if (!(error instanceof RpcError)) return false
  return error.code === -32601 || (error.code === -32004 && error.data['reason'] === 'streaming')
}

function unreadable(agent: string): AgentCallError {
  return new AgentCallError(`The answer of agent ${agent} is not a task`, { agent })
}
