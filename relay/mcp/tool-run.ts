import { setTimeout as wait } from 'node:timers/promises'
import type { HandlerContext } from '@parley/agent/internal/author/context'
import { type Output, pause, progress } from '@parley/agent/internal/author/output'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { cleanLine } from '@parley/wire/model/clean-text'
import { AgentRefused, AgentUnreachable, InvalidAgentAnswer } from '../client/agent-errors.ts'
import { RelayedTaskFailed } from '../handler/outcome.ts'
import type { LinkStore, TaskLink } from '../store/links.ts'
import {
  type InputRequest,
  type InputResponses,
  questionOf,
  readInputRequests,
  responsesTo,
} from './input-requests.ts'
import { OpenCall, type WaitingCalls } from './open-call.ts'
import { isOfOpenCall, openKey, type PausedCall, pausedIn, pauseText } from './paused-call.ts'
import { type RequestedCall, requestedCall } from './requested-call.ts'
import { type McpSession, ServerRefused, SessionEnded, type TaskHandle, type ToolAnswer } from './session.ts'
import type { Sessions } from './sessions.ts'
import { resultOutput } from './tool-result.ts'
import type { McpTool } from './tools.ts'

export interface McpAgent {
  /** The ID under which links are stored. */
  entryId: string
  tools: () => readonly McpTool[]
  sessions: Sessions
  waiting: WaitingCalls
  links: LinkStore
  /** The maximum size of a result. */
  outputMaxBytes: number
  timing?: Partial<ToolTiming>
}

export interface ToolTiming {
  /** The shortest and the longest delay between two reads of a task at the server. */
  pollMs: number
  pollMaxMs: number
  /** How long a server with a running task may be unreachable. */
  unreachableMaxMs: number
  /** The delay before a request is repeated that the server has not received. */
  repeatDelayMs: number
}

const defaultTiming: ToolTiming = {
  pollMs: 250,
  pollMaxMs: 60_000,
  unreachableMaxMs: 120_000,
  repeatDelayMs: 250,
}
const attemptsMax = 4

/**
 * Runs one message of a task: calls a tool of the server, or continues a call or task that waits for input. Yields what a handler would
 * yield.
 */
export async function* toolRun(agent: McpAgent, context: HandlerContext): AsyncGenerator<Output> {
  const run = new ToolRun(agent, context)
  try {
    yield* run.outputs()
  } catch (error) {
    context.signal.throwIfAborted()
    throw reasonFor(error)
  }
}

class ToolRun {
  readonly #agent: McpAgent
  readonly #context: HandlerContext
  readonly #timing: ToolTiming
  #link: TaskLink | undefined

  constructor(agent: McpAgent, context: HandlerContext) {
    this.#agent = agent
    this.#context = context
    this.#timing = { ...defaultTiming, ...agent.timing }
  }

  async *outputs(): AsyncGenerator<Output> {
    const { links, entryId, waiting } = this.#agent
    const { task, message } = this.#context
    this.#link = await links.task(entryId, task.id)
    const open = waiting.take(task.id)
    if (open?.input !== undefined) {
      yield* this.#answerOpen(open, open.input)
      return
    }
    const isRepeated = this.#link?.messageId === message.messageId || (links.mayForget && task.starts > 1)
    const paused = pausedIn(this.#link)
    if (isRepeated) {
      yield* this.#resume(paused)
      return
    }
    if (paused === undefined) {
      yield* this.#start()
      return
    }
    if (this.#link?.taskId !== undefined) {
      yield* this.#answerTask(this.#link.taskId, paused)
      return
    }
    if (isOfOpenCall(paused)) throw endedWhileWaiting()
    yield* this.#answerCall(paused)
  }

  async *#start(): AsyncGenerator<Output> {
    const choice = requestedCall(this.#context, this.#agent.tools())
    if ('kind' in choice) yield choice.output
    else yield* this.#call({ ...choice })
  }

  /** Continues after a restart of the process. */
  async *#resume(paused: PausedCall | undefined): AsyncGenerator<Output> {
    const taskId = this.#link?.taskId
    if (taskId !== undefined) {
      yield* this.#follow(taskId, paused)
      return
    }
    // The pause of the task was not committed.
    if (paused !== undefined && paused.requests.length > 0 && this.#link?.isAnswered === true) {
      if (isOfOpenCall(paused)) throw endedWhileWaiting()
      yield question(paused.requests)
      return
    }
    const choice = requestedCall(this.#context, this.#agent.tools())
    if ('kind' in choice) {
      yield choice.output
      return
    }
    if (!choice.tool.isRepeatable)
      throw new RelayedTaskFailed(
        'The call was interrupted by a restart, and it is not known whether the tool has run. Send the message again.',
      )
    yield* this.#call(choice)
  }

  async *#call(
    call: RequestedCall & { state?: string | undefined; responses?: InputResponses },
  ): AsyncGenerator<Output> {
    const { tool, responses, state } = call
    await this.#save({ isAnswered: false, pause: undefined })
    const given = {
      name: tool.name,
      inputSchema: tool.inputSchema,
      arguments: call.arguments,
      responses,
      state,
    }
    for (let attempt = 1; ; attempt += 1) {
      let session: McpSession | undefined
      try {
        session = await this.#agent.sessions.open(this.#context.context.id, this.#context.signal)
        yield* this.#run(new OpenCall(this.#agent.sessions, session, given), call)
        return
      } catch (error) {
        if (session !== undefined && (error instanceof SessionEnded || session.isClosed))
          await this.#agent.sessions.end(session)
        const isSafe = error instanceof SessionEnded || (error instanceof AgentUnreachable && !error.received)
        if (!isSafe || attempt === attemptsMax) throw error
        const retryMs = error instanceof AgentUnreachable ? error.retryAfterMs : undefined
        const delayMs = Math.min(retryMs ?? this.#timing.repeatDelayMs * 2 ** (attempt - 1), 10_000)
        await wait(delayMs, undefined, { signal: this.#context.signal })
      }
    }
  }

  /** Reads the events of a call until it ends or waits for input. */
  async *#run(call: OpenCall, choice: RequestedCall): AsyncGenerator<Output> {
    const { signal, task } = this.#context
    let isWaiting = false
    try {
      for (;;) {
        const event = await call.next(signal)
        if (event.kind === 'progress') yield progress(event.text)
        else if (event.kind === 'failure') throw event.error
        else if (event.kind === 'answer') {
          yield* this.#take(event.answer, choice)
          return
        } else {
          const request = { ...event.request, key: openKey }
          await this.#save({
            isAnswered: true,
            pause: pauseText({ tool: choice.tool.name, arguments: choice.arguments, requests: [request] }),
          })
          isWaiting = true
          this.#agent.waiting.set(task.id, call)
          yield question([event.request])
          return
        }
      }
    } finally {
      if (!isWaiting) {
        call.cancel()
        if (signal.aborted && this.#link?.taskId === undefined)
          await this.#save({ isEnded: true }).catch(() => {})
      }
    }
  }

  async *#take(answer: ToolAnswer, choice: RequestedCall): AsyncGenerator<Output> {
    if (answer.kind === 'task') {
      await this.#save({ isAnswered: true, taskId: answer.task.taskId })
      yield* this.#follow(answer.task.taskId, undefined, answer.task)
      return
    }
    if (answer.kind === 'result') {
      yield* this.#end(answer.result)
      return
    }
    const requests = readInputRequests(answer.requests)
    const { state } = answer
    // Without requests, the server only wants the call again.
    if (requests.length === 0) {
      yield* this.#again(choice, state)
      return
    }
    const paused = {
      tool: choice.tool.name,
      arguments: choice.arguments,
      requests,
      ...(state !== undefined && { state }),
    }
    await this.#save({ isAnswered: true, pause: pauseText(paused) })
    yield question(requests)
  }

  async *#again(choice: RequestedCall, state: string | undefined): AsyncGenerator<Output> {
    await wait(this.#timing.pollMs, undefined, { signal: this.#context.signal })
    yield* this.#call({ ...choice, state, responses: {} })
  }

  async *#end(result: Record<string, unknown>): AsyncGenerator<Output> {
    await this.#save({ isAnswered: true, isEnded: true, pause: undefined })
    yield* resultOutput(result, this.#agent.outputMaxBytes)
  }

  /** Answers the request of a legacy server, of which the call is still open. */
  async *#answerOpen(call: OpenCall, request: InputRequest): AsyncGenerator<Output> {
    const responses = this.#responses([request])
    if (typeof responses === 'string') {
      this.#agent.waiting.set(this.#context.task.id, call)
      yield question([request], responses)
      return
    }
    const paused = pausedIn(this.#link)
    await this.#save({ isAnswered: false })
    call.respond(responses)
    yield* this.#run(call, this.#choiceOf(paused))
  }

  /** Repeats the call of a modern server with the answers. */
  async *#answerCall(paused: PausedCall): AsyncGenerator<Output> {
    const responses = this.#responses(paused.requests)
    if (typeof responses === 'string') {
      yield question(paused.requests, responses)
      return
    }
    yield* this.#call({ ...this.#choiceOf(paused), state: paused.state, responses })
  }

  async *#answerTask(taskId: string, paused: PausedCall): AsyncGenerator<Output> {
    const responses = this.#responses(paused.requests)
    if (typeof responses === 'string') {
      yield question(paused.requests, responses)
      return
    }
    const { signal, context } = this.#context
    await this.#save({ isAnswered: false })
    const session = await this.#agent.sessions.open(context.id, signal)
    await session.updateTask(taskId, responses, signal)
    const answered = [...paused.answered, ...Object.keys(responses)].slice(-1000)
    const now = { ...paused, requests: [], answered }
    await this.#save({ isAnswered: true, pause: pauseText(now) })
    yield* this.#follow(taskId, now)
  }

  /** Follows a task at the server until it ends or requires input. */
  async *#follow(taskId: string, paused: PausedCall | undefined, first?: TaskHandle): AsyncGenerator<Output> {
    const { signal } = this.#context
    const answered = new Set(paused?.answered)
    let shown: string | undefined
    let task = first ?? (yield* this.#patiently(taskId))
    for (;;) {
      const { status, statusMessage } = task
      if (status === 'completed') {
        if (!isObject(task.result)) throw new InvalidAgentAnswer('The task of the server has no result')
        yield* this.#end(task.result)
        return
      }
      if (status === 'failed' || status === 'cancelled') {
        await this.#save({ isAnswered: true, isEnded: true })
        throw new RelayedTaskFailed(failureText(task))
      }
      const requests = status === 'input_required' ? readInputRequests(task.inputRequests) : []
      const open = requests.filter(({ key }) => !answered.has(key))
      if (open.length > 0) {
        const choice = { tool: paused?.tool ?? '', arguments: paused?.arguments ?? {} }
        await this.#save({
          isAnswered: true,
          pause: pauseText({ ...choice, requests: open, answered: [...answered] }),
        })
        yield question(open)
        return
      }
      const text = cleanLine(statusMessage ?? '', 1000)
      if (status === 'working' && text !== '' && text !== shown) yield progress(text)
      shown = text
      const { pollMs, pollMaxMs } = this.#timing
      await wait(Math.min(Math.max(task.pollIntervalMs ?? 1000, pollMs), pollMaxMs), undefined, { signal })
      task = yield* this.#patiently(taskId)
    }
  }

  /** Reads a task, and repeats that while the server is unreachable, for a limited time. */
  async *#patiently(taskId: string): AsyncGenerator<Output, TaskHandle> {
    const { signal, context } = this.#context
    const { unreachableMaxMs, pollMaxMs } = this.#timing
    const until = performance.now() + unreachableMaxMs
    for (let attempt = 1; ; attempt += 1) {
      let session: McpSession | undefined
      try {
        session = await this.#agent.sessions.open(context.id, signal)
        return await session.getTask(taskId, signal)
      } catch (error) {
        if (session !== undefined && (error instanceof SessionEnded || session.isClosed))
          await this.#agent.sessions.end(session)
        if (!(error instanceof AgentUnreachable || error instanceof SessionEnded)) throw error
        if (performance.now() >= until)
          throw new RelayedTaskFailed(`The server is no longer reachable: ${error.message}.`)
        if (attempt === 1) yield progress('The server is not reachable at the moment.')
        await wait(Math.min(5000, pollMaxMs), undefined, { signal })
      }
    }
  }

  #responses(requests: readonly InputRequest[]) {
    const { data, text } = this.#context
    return responsesTo(requests, { data, text })
  }

  /** The tool of an interrupted call. Its name at the server counts, also if the list of tools has changed since. */
  #choiceOf(paused: PausedCall | undefined): RequestedCall {
    const name = paused?.tool ?? ''
    const tool = this.#agent.tools().find((one) => one.name === name)
    const unknown = {
      id: name,
      name,
      title: name,
      description: name,
      inputSchema: {},
      isRepeatable: false,
      isDestructive: false,
    }
    return { tool: tool ?? unknown, arguments: paused?.arguments ?? {} }
  }

  async #save(change: Partial<TaskLink>): Promise<void> {
    const { links, entryId } = this.#agent
    const { task, message } = this.#context
    const before = this.#link ?? { isAnswered: false, isEnded: false }
    const { pause: kept, ...link } = { ...before, ...change, messageId: message.messageId }
    this.#link = { ...link, ...(kept !== undefined && { pause: kept }) }
    await links.saveTask(entryId, task.id, this.#link)
  }
}

const endedWhileWaiting = () =>
  new RelayedTaskFailed('The call ended while it waited for the answer. Send the message again.')

function question(requests: readonly InputRequest[], fault?: string): Output {
  const { text, data } = questionOf(requests)
  const prompt = fault === undefined ? text : `${fault}\n\n${text}`
  return pause('ask', [
    { kind: 'text', text: prompt },
    { kind: 'data', data },
  ])
}

function failureText({ status, statusMessage, error }: TaskHandle): string {
  const message =
    isObject(error) && typeof error['message'] === 'string' ? error['message'] : (statusMessage ?? '')
  const text = cleanLine(message, 1000)
  if (status === 'cancelled') return `The server canceled the task${text && `: ${text}`}`
  return text === '' ? 'The task failed at the server.' : text
}

/** Returns the error that fails the task, with a sentence for the caller. */
function reasonFor(error: unknown): unknown {
  const fail = (text: string) => new RelayedTaskFailed(text, { cause: error })
  if (error instanceof ServerRefused) return fail(`The server refused the call: ${error.message}`)
  if (error instanceof AgentRefused) return fail(error.message)
  if (error instanceof SessionEnded) return fail('The server ended the session. Send the message again.')
  if (error instanceof AgentUnreachable) {
    const effect = error.received ? 'It is not known whether the tool has run' : 'The tool has not run'
    return fail(`${error.message}. ${effect}.`)
  }
  if (error instanceof InvalidAgentAnswer) return fail(`Invalid answer of the server: ${error.message}`)
  return error
}
