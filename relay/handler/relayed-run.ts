import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import type { HandlerContext } from '@parley/agent/internal/author/context'
import { type Output, progress } from '@parley/agent/internal/author/output'
import type { ReadFrame } from '@parley/wire/codecs/codec'
import type { SendMessage } from '@parley/wire/model/call'
import { isResting, isTerminal } from '@parley/wire/model/task'
import type { A2aClient } from '../client/a2a-client.ts'
import { AgentRefused, AgentUnreachable, InvalidAgentAnswer } from '../client/agent-errors.ts'
import type { LinkStore, TaskLink } from '../store/links.ts'
import { asksAgain, ForeignTask } from './foreign-task.ts'
import { outcomeOf, RelayedTaskFailed } from './outcome.ts'

export interface RelayedAgent {
  /** The ID of its entry in the registry, under which the links are stored. A slug may pass to another agent. */
  entryId: string
  client: Pick<A2aClient, 'send' | 'follow' | 'get'>
  links: LinkStore
  /** Whether the agent's card declares streaming. */
  streaming: boolean
  /** The maximum size of a task's artifacts. */
  outputMaxBytes: number
  timing?: Partial<RelayTiming>
}

export interface RelayTiming {
  /** The delay between two reads of a running task, at first and at most. */
  pollMs: number
  pollMaxMs: number
  /** How long an agent with a running task may be unreachable. */
  unreachableMaxMs: number
}

const defaultTiming: RelayTiming = { pollMs: 500, pollMaxMs: 5000, unreachableMaxMs: 120_000 }

/** How long after a cancellation the agent may name the task, so that it is canceled there too. */
export const lateAnswerMs = 300_000

/**
 * Runs one message of a task at a foreign agent, and yields what its handler would yield. A run after a restart follows the
 * task that the earlier run created.
 */
export async function* relayedRun(agent: RelayedAgent, context: HandlerContext): AsyncGenerator<Output> {
  const run = new Run(agent, context)
  try {
    yield* run.outputs()
  } catch (error) {
    context.signal.throwIfAborted()
    throw reasonFor(error)
  }
}

class Run {
  readonly #agent: RelayedAgent
  readonly #context: HandlerContext
  readonly #timing: RelayTiming
  #task: ForeignTask
  #link: TaskLink | undefined
  /** The agent's ID of the context. */
  #contextId: string | undefined
  /** The write of the link that has not ended yet, and whether it misses later changes. */
  #saving: Promise<void> | undefined
  #isChanged = false

  constructor(agent: RelayedAgent, context: HandlerContext) {
    this.#agent = agent
    this.#context = context
    this.#timing = { ...defaultTiming, ...agent.timing }
    this.#task = new ForeignTask(agent.outputMaxBytes)
  }

  async *outputs(): AsyncGenerator<Output> {
    const { links, entryId, outputMaxBytes } = this.#agent
    const { task, message } = this.#context
    this.#link = await links.task(entryId, task.id)
    const isNewMessage = this.#link?.messageId !== message.messageId
    const { taskId, pause } = this.#link ?? {}
    this.#task = new ForeignTask(outputMaxBytes, { taskId, pause: isNewMessage ? pause : undefined })
    const isContinued = this.#link?.taskId !== undefined
    const earlier = isNewMessage ? this.#forgottenLink() : this.#link
    if (earlier === undefined) yield* this.#send()
    else {
      this.#link = earlier
      yield* this.#resume(earlier)
    }
    if (!this.#isDone()) yield* this.#follow()
    // Agents do not send the artifacts of earlier messages again.
    if (isContinued && this.#task.status?.state === 'completed') await this.#addEarlierArtifacts()
    await this.#saving
    yield* outcomeOf(this.#task)
  }

  #isDone(): boolean {
    const { status, message } = this.#task
    return message !== undefined || (status !== undefined && isResting(status.state))
  }

  async *#send(): AsyncGenerator<Output> {
    const { client } = this.#agent
    const { message, signal } = this.#context
    const params = await this.#params()
    await this.#saveLink({ messageId: message.messageId, isAnswered: false })
    signal.throwIfAborted()
    let answered = false
    try {
      for await (const frame of this.#answerTo(client, params)) {
        yield* this.#take(frame)
        if (!answered) {
          answered = true
          this.#changeLink({ isAnswered: true, taskId: this.#task.taskId })
        }
        if (this.#isDone()) return
      }
    } catch (error) {
      // The task is followed if it is known; otherwise the agent's answer is lost.
      const isLost = error instanceof AgentUnreachable && error.received
      if (!isLost || !answered || this.#task.taskId === undefined) throw error
    }
    if (this.#task.taskId === undefined && this.#task.message === undefined)
      throw new InvalidAgentAnswer("The agent's stream ended without a task or a message")
  }

  /**
   * Sends the message. A run that ends before the agent has named its task leaves the request open, so that a cancellation can
   * reach the task.
   */
  async *#answerTo(client: RelayedAgent['client'], params: SendMessage): AsyncGenerator<ReadFrame> {
    const { signal } = this.#context
    const sending = new AbortController()
    const frames = client.send(params, sending.signal)
    const stop = () => sending.abort(signal.reason)
    const aborted = Promise.withResolvers<never>()
    const leave = () => aborted.reject(signal.reason)
    signal.addEventListener('abort', leave)
    const first = frames.next()
    try {
      let next = await Promise.race([first, aborted.promise])
      signal.addEventListener('abort', stop)
      while (next.done !== true) {
        yield next.value
        next = await frames.next()
      }
    } finally {
      signal.removeEventListener('abort', leave)
      signal.removeEventListener('abort', stop)
      if (!signal.aborted || this.#link?.isAnswered === true) await frames.return(undefined)
      else if (this.#link?.taskId !== undefined) stop()
      else void this.#saveLate(first, frames, sending)
    }
  }

  /** Stores the agent's ID of a task that arrives after the end of the run. */
  async #saveLate(
    first: Promise<IteratorResult<ReadFrame>>,
    frames: AsyncGenerator<ReadFrame>,
    sending: AbortController,
  ): Promise<void> {
    const timer = setTimeout(() => sending.abort(), lateAnswerMs).unref()
    try {
      const { value } = await first
      const taskId = taskIdIn(value)
      await this.#saveLink(taskId === undefined ? { isEnded: true } : { isAnswered: true, taskId })
    } catch (error) {
      this.#context.log.debug({ err: error }, 'the agent did not name the task of a canceled message')
    } finally {
      clearTimeout(timer)
      sending.abort()
      await frames.return(undefined).catch(() => {})
    }
  }

  /** Continues after a restart of the relay. */
  async *#resume(link: TaskLink): AsyncGenerator<Output> {
    if (link.taskId === undefined)
      throw new RelayedTaskFailed(
        'The relay was restarted while the message was being sent, and it is not known whether the agent has received it. Send the message again.',
      )
    const task = yield* this.#patiently(() => this.#read())
    const isReceived = link.isAnswered || task.history.some(({ messageId }) => messageId === link.messageId)
    // Agents may keep no history.
    if (isReceived || isTerminal(task.status.state) || asksAgain(task.status, link)) {
      yield* this.#take({ kind: 'task', task })
      return
    }
    // The task still waits for the message.
    if (isResting(task.status.state)) yield* this.#send()
  }

  async *#follow(): AsyncGenerator<Output> {
    let { pollMs } = this.#timing
    let mayStream = this.#agent.streaming
    while (!this.#isDone()) {
      if (mayStream) mayStream = yield* this.#stream()
      if (this.#isDone()) break
      const task = yield* this.#patiently(() => this.#read())
      yield* this.#take({ kind: 'task', task })
      if (this.#isDone()) break
      await wait(pollMs, undefined, { signal: this.#context.signal })
      pollMs = Math.min(pollMs * 1.5, this.#timing.pollMaxMs)
    }
  }

  /** Follows the task's stream until it ends. Returns whether another stream may be opened. */
  async *#stream(): AsyncGenerator<Output, boolean> {
    const { taskId } = this.#task
    if (taskId === undefined) return false
    let frames = 0
    try {
      for await (const frame of this.#agent.client.follow(taskId, this.#context.signal)) {
        frames += 1
        yield* this.#take(frame)
        if (this.#isDone()) return true
      }
    } catch (error) {
      if (error instanceof AgentUnreachable) return true
      if (!(error instanceof AgentRefused)) throw error
      return false
    }
    // A server that ends streams early would otherwise be called indefinitely.
    return frames > 1
  }

  *#take(frame: ReadFrame): Generator<Output> {
    if (frame.kind === 'error') throw new AgentRefused(frame.error)
    yield* this.#task.take(frame)
    if (this.#isDone()) this.#changeToEnd()
  }

  #changeToEnd(): void {
    const { status, message } = this.#task
    const isPaused = status?.state === 'input-required' || status?.state === 'auth-required'
    if (this.#link?.isEnded === true) return
    const { taskId, pause } = this.#task
    const isEnded = !isPaused || message !== undefined
    this.#changeLink({ isAnswered: true, isEnded, taskId, ...(!isEnded && { pause }) })
  }

  async #addEarlierArtifacts(): Promise<void> {
    try {
      const task = await this.#read()
      this.#task.addEarlier(task.artifacts)
    } catch (error) {
      this.#context.signal.throwIfAborted()
      this.#context.log.debug({ err: error }, 'the agent no longer returns the completed task')
    }
  }

  #read() {
    return this.#agent.client.get(this.#task.taskId ?? '', this.#context.signal)
  }

  /** Repeats a read while the agent is unreachable, for a limited time, and reports that to the caller. */
  async *#patiently<T>(read: () => Promise<T>): AsyncGenerator<Output, T> {
    const { unreachableMaxMs } = this.#timing
    const until = performance.now() + unreachableMaxMs
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await read()
      } catch (error) {
        if (!(error instanceof AgentUnreachable)) throw error
        if (performance.now() >= until)
          throw new RelayedTaskFailed(`The agent is no longer reachable: ${error.message}.`)
        if (attempt === 1) {
          const seconds = Math.ceil(unreachableMaxMs / 1000)
          yield progress(
            `The agent is not reachable at the moment. The task fails if this lasts ${seconds} seconds.`,
          )
        }
        await wait(this.#timing.pollMaxMs, undefined, { signal: this.#context.signal })
      }
    }
  }

  /**
   * Returns the link of a message that an earlier start of the task may have sent: the process of that start has ended, and a
   * failure of the machine may have lost the link.
   */
  #forgottenLink(): TaskLink | undefined {
    const { task, message } = this.#context
    if (!this.#agent.links.mayForget || task.starts <= 1) return undefined
    return { ...this.#link, messageId: message.messageId, isAnswered: false, isEnded: false }
  }

  async #saveLink(change: Partial<TaskLink>): Promise<void> {
    await this.#saving
    this.#merge(change)
    await this.#write()
  }

  /** Writes the link in the background. Frames that arrive together cost one write. */
  #changeLink(change: Partial<TaskLink>): void {
    this.#merge(change)
    this.#isChanged = true
    if (this.#saving !== undefined) return
    this.#saving = this.#writeChanges()
    // The run waits for the write before its outcome.
    this.#saving.catch((error: unknown) => this.#context.log.debug({ err: error }, 'a link was not stored'))
  }

  async #writeChanges(): Promise<void> {
    await nextTurn()
    while (this.#isChanged) {
      this.#isChanged = false
      await this.#write()
    }
    this.#saving = undefined
  }

  #merge(change: Partial<TaskLink>): void {
    const before = this.#link ?? { messageId: '', isAnswered: false, isEnded: false }
    const taskId = change.taskId ?? before.taskId
    this.#link = { ...before, ...change, ...(taskId !== undefined && { taskId }) }
  }

  async #write(): Promise<void> {
    const { links, entryId } = this.#agent
    const { task, context } = this.#context
    const { contextId } = this.#task
    const isNewContext = contextId !== undefined && contextId !== this.#contextId
    await Promise.all([
      this.#link && links.saveTask(entryId, task.id, this.#link),
      isNewContext && links.saveContext(entryId, context.id, contextId),
    ])
    this.#contextId = contextId ?? this.#contextId
  }

  /** Returns the message with the IDs of the agent. */
  async #params(): Promise<SendMessage> {
    const { links, entryId } = this.#agent
    const { message, context, acceptedOutputModes } = this.#context
    const contextId = await links.context(entryId, context.id)
    this.#contextId = contextId
    const taskId = this.#link?.taskId
    const references = await Promise.all(
      (message.referenceTaskIds ?? []).map((id) => links.task(entryId, id)),
    )
    const referenceTaskIds = references.flatMap((link) => link?.taskId ?? [])
    const parts = message.parts.map(({ verified: _verified, ...part }) => part)
    return {
      message: {
        role: 'user',
        parts,
        messageId: message.messageId,
        ...(contextId !== undefined && { contextId }),
        ...(taskId !== undefined && { taskId }),
        ...(referenceTaskIds.length > 0 && { referenceTaskIds }),
        ...(message.metadata !== undefined && { metadata: message.metadata }),
      },
      configuration: { acceptedOutputModes, wait: false },
    }
  }
}

function taskIdIn(frame: ReadFrame | undefined): string | undefined {
  if (frame?.kind === 'task') return frame.task.id
  return frame?.kind === 'status-update' || frame?.kind === 'artifact-update' ? frame.taskId : undefined
}

/** Returns the error that fails the task, with a sentence for the caller. */
function reasonFor(error: unknown): unknown {
  if (error instanceof AgentRefused) {
    if (error.error === 'TaskNotFound')
      return new RelayedTaskFailed('The agent no longer knows the task. It may have been restarted.', {
        cause: error,
      })
    return new RelayedTaskFailed(`The agent refused the message: ${error.message}`, { cause: error })
  }
  if (error instanceof AgentUnreachable) {
    const effect = error.received
      ? 'It is not known whether it has received the message'
      : 'It has not received the message'
    return new RelayedTaskFailed(`${error.message}. ${effect}.`, { cause: error })
  }
  if (error instanceof InvalidAgentAnswer)
    return new RelayedTaskFailed(`Invalid agent response: ${error.message}`, { cause: error })
  return error
}
