import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { ReadFrame, SendAnswer } from '@parley/wire/codecs/codec'
import { ParleyError } from '@parley/wire/errors'
import { contextOf, isResting, type Task } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import { uuidPattern } from '@parley/wire/model/uuid'
import type { TaskAddress, TaskChange } from './agent-calls.ts'
import type { RequestSender } from './inner-requests.ts'
import { callAgent, streamFromAgent } from './rpc-calls.ts'

/** The frames of a stream, without errors, which are thrown. */
export type TaskFrame = Exclude<ReadFrame, { kind: 'error' }>

/** The delays between two attempts to read a task. */
const [delayMinMs, delayMaxMs] = [100, 2000]
/** How long an agent that runs a task may be unavailable, for example while it restarts. */
const awayMaxMs = 30_000

/** Reads a task of an agent until it rests. Short absences of the agent do not end the reading. */
export class TaskReader {
  readonly #sender: RequestSender
  readonly #address: TaskAddress
  readonly #signal: AbortSignal | undefined
  #awaySince: number | undefined
  #delayMs = delayMinMs

  constructor(sender: RequestSender, { taskId, agent }: TaskAddress, signal: AbortSignal | undefined) {
    this.#sender = sender
    // An answer without the slug of its agent is of a task that the gateway finds.
    this.#address = { taskId, agent: agent === '' ? undefined : agent }
    this.#signal = signal
  }

  /** Yields the task, then its changes, and the task again after each interruption. */
  async *changes(): AsyncGenerator<TaskChange> {
    for (;;) {
      try {
        for await (const change of this.#streamed()) {
          this.#awaySince = undefined
          this.#delayMs = delayMinMs
          yield change
          if (hasRested(change)) return
        }
      } catch (error) {
        if (isWithoutStreams(error)) break
        this.#requireInterruption(error)
      }
      await this.#pause()
    }
    yield* this.#polled()
  }

  /** Returns the task as it is when it rests, or at this time. @param task the task as it is known */
  async resting(task: Task, until: number): Promise<Task> {
    let known = task
    while (!isResting(known.status.state) && Date.now() < until) {
      await this.#pause(until - Date.now())
      known = (await this.#read()) ?? known
    }
    return known
  }

  /** The events before the stream began are in the task, which is read after its first frame. */
  async *#streamed(): AsyncGenerator<TaskChange> {
    const { taskId, agent } = this.#address
    let isFirst = true
    const options = { agent, signal: this.#signal }
    for await (const { frame } of streamFromAgent(this.#sender, 'resubscribe', { taskId }, options)) {
      yield isFirst ? { kind: 'task', task: await this.#task() } : changeOf(frame)
      isFirst = false
    }
  }

  /** Yields the task when it has changed. */
  async *#polled(): AsyncGenerator<TaskChange> {
    let seen: string | undefined
    for (;;) {
      const task = await this.#read()
      if (task !== undefined) {
        const shown = JSON.stringify([task.status.state, task.status.timestamp, task.artifacts.length])
        if (shown !== seen) yield { kind: 'task', task }
        seen = shown
        if (isResting(task.status.state)) return
      }
      await this.#pause()
    }
  }

  /** Returns undefined if the agent is away for a short time. */
  async #read(): Promise<Task | undefined> {
    try {
      const task = await this.#task()
      this.#awaySince = undefined
      return task
    } catch (error) {
      this.#requireInterruption(error)
      return undefined
    }
  }

  async #task(): Promise<Task> {
    const { taskId, agent } = this.#address
    const options = { agent, signal: this.#signal }
    const { result, dialect } = await callAgent(this.#sender, 'getTask', { taskId }, options)
    const task = dialect.readTask(result)
    if (task === undefined) throw noTask()
    return task
  }

  /** Throws errors other than interruptions, and interruptions that last too long. */
  #requireInterruption(error: unknown): void {
    this.#awaySince ??= Date.now()
    if (!isInterruption(error) || Date.now() - this.#awaySince > awayMaxMs) throw error
  }

  async #pause(maxMs = delayMaxMs): Promise<void> {
    await pause(Math.max(0, Math.min(this.#delayMs, maxMs)), undefined, { signal: this.#signal })
    this.#delayMs = Math.min(2 * this.#delayMs, delayMaxMs)
  }
}

/** Returns the task of an answer. An external agent may answer with a message only, so its task has ended. */
export function taskOf(answer: SendAnswer): Task {
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

export function changeOf(frame: TaskFrame): TaskChange {
  if (frame.kind === 'task' || frame.kind === 'message') return { kind: 'task', task: taskOf(frame) }
  const { taskId } = frame
  if (frame.kind === 'status-update') return { kind: 'status', taskId, status: frame.status }
  const { artifact, append, lastChunk: last } = frame
  const { artifactId, parts, name } = artifact
  return { kind: 'artifact', taskId, artifactId, name, parts, append, last }
}

export function hasRested(change: TaskChange): boolean {
  if (change.kind === 'artifact') return false
  return isResting((change.kind === 'task' ? change.task.status : change.status).state)
}

/** Whether the agent refuses streams. */
export function isWithoutStreams(error: unknown): boolean {
  const name = error instanceof ParleyError ? error.error : undefined
  return name === 'UnsupportedOperation' || name === 'MethodNotFound'
}

/** Whether the task may continue, although its stream has ended. */
export function isInterruption(error: unknown): boolean {
  return error instanceof ParleyError && error.error === 'Unavailable'
}

export const noTask = () =>
  new ParleyError('InvalidAgentResponse', { message: 'The agent answered without a valid task' })
