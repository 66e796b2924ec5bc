import { ParleyError } from '@parley/wire/errors'
import { isResting, isTerminal, type Part, type Task } from '@parley/wire/model/task'
import type { CallerCalls, TaskChange } from '../calls/agent-calls.ts'
import type { Placed } from './place-turn.ts'
import { plainText } from './task-answer.ts'

/** How long a request without a stream waits for the task. SDKs stop waiting after this time, too. */
export const waitMaxMs = 600_000

/** The task of a request, and the agent that has it. */
export interface TurnTask {
  task: Task
  agent?: string | undefined
  decisionId?: string | undefined
}

type Calls = Pick<CallerCalls, 'send' | 'stream' | 'findTask' | 'follow'>

/** Waits until the task has ended or paused, or until the time is up. */
export async function finishTurn(
  calls: Calls,
  placed: Placed,
  { signal, waitMs = waitMaxMs }: { signal: AbortSignal; waitMs?: number },
): Promise<TurnTask> {
  if (placed.kind === 'message') return calls.send(placed.message, { waitMs, signal })
  const { address } = placed
  const found = await calls.findTask(address, { signal })
  if (isResting(found.task.status.state) || waitMs === 0) return found
  const until = AbortSignal.any([signal, AbortSignal.timeout(waitMs)])
  const current = new CurrentTask(found)
  try {
    for await (const change of calls.follow(address, { signal: until })) current.apply(change)
  } catch (error) {
    if (!until.aborted || signal.aborted) throw error
  }
  return current.turn
}

/** Returns the changes of the task until it has ended or paused. */
export function streamTurn(calls: Calls, placed: Placed, signal: AbortSignal): AsyncIterable<TaskChange> {
  return placed.kind === 'message'
    ? calls.stream(placed.message, { signal })
    : calls.follow(placed.address, { signal })
}

/** The size of the artifacts that are kept during a stream, in characters: that of the largest stream of a foreign agent. */
const artifactsMaxChars = 256 * 1024 * 1024

/** A task as its changes show it. Its artifacts grow in place, because a copy for each delta would take quadratic time. */
export class CurrentTask {
  #turn: TurnTask
  /** The positions of the artifacts by id. */
  #positions: Map<string, number>
  #chars: number
  /** The only artifact with live text: the first one that has deltas. */
  #live: string | undefined
  /** Whether deltas may be missing, because the stream was interrupted or began later than the task. */
  #isIncomplete = false

  constructor(turn: TurnTask) {
    const { task } = turn
    this.#turn = { ...turn, task: { ...task, artifacts: [...task.artifacts] } }
    this.#positions = new Map(task.artifacts.map(({ artifactId }, at) => [artifactId, at]))
    this.#chars = charsOf(task.artifacts.flatMap(({ parts }) => parts))
  }

  get turn(): TurnTask {
    return this.#turn
  }

  get task(): Task {
    return this.#turn.task
  }

  /**
   * @returns the text that the change adds to the answer
   * @throws ParleyError if the artifacts are too large
   */
  apply(change: TaskChange): string {
    if (change.kind === 'task') {
      const { task, agent = this.#turn.agent, decisionId = this.#turn.decisionId } = change
      const current = new CurrentTask({ task, agent, decisionId })
      this.#turn = current.#turn
      this.#positions = current.#positions
      this.#chars = current.#chars
      this.#isIncomplete = true
      return ''
    }
    if (change.kind === 'status') {
      this.#turn = { ...this.#turn, task: { ...this.#turn.task, status: change.status } }
      return ''
    }
    const { artifactId, parts, append, last } = change
    this.#keep(artifactId, parts, append)
    if (last || this.#isIncomplete) return ''
    this.#live ??= artifactId
    return this.#live === artifactId ? plainText(parts) : ''
  }

  #keep(artifactId: string, parts: readonly Part[], append: boolean): void {
    const { artifacts } = this.#turn.task
    const at = this.#positions.get(artifactId) ?? artifacts.length
    const { name = '', parts: before = [] } = artifacts[at] ?? {}
    this.#chars += charsOf(parts) - (append ? 0 : charsOf(before))
    if (this.#chars > artifactsMaxChars)
      throw new ParleyError('InvalidAgentResponse', {
        status: 502,
        message: 'The answer of the agent is too large. Request a smaller one.',
      })
    this.#positions.set(artifactId, at)
    artifacts[at] = { ...artifacts[at], artifactId, name, parts: append ? joined(before, parts) : [...parts] }
  }
}

/** Appends parts. Texts of deltas become one part. */
function joined(before: Part[], added: readonly Part[]): Part[] {
  for (const part of added) {
    const last = before.at(-1)
    if (part.kind === 'text' && last?.kind === 'text')
      before[before.length - 1] = { kind: 'text', text: last.text + part.text }
    else before.push(part)
  }
  return before
}

function charsOf(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => {
    if (part.kind === 'text') return sum + part.text.length
    if (part.kind === 'data') return sum + JSON.stringify(part.data).length
    return sum + (part.file.bytes?.length ?? 0)
  }, 0)
}

/**
 * Checks that the task has an answer: a result, a question or a refusal.
 * @throws ParleyError if it has failed, was canceled, or is still in progress
 */
export function requireAnswer({ task, agent }: TurnTask): void {
  const { state } = task.status
  if (state === 'completed' || state === 'rejected' || (isResting(state) && !isTerminal(state))) return
  const data = { taskId: task.id, state, ...(agent !== undefined && { agent }) }
  // Clients repeat requests that failed with a server error, which would start the work again.
  const headers = { 'x-should-retry': 'false' }
  if (state === 'failed') {
    const reason = plainText(task.status.message?.parts ?? []).trim()
    const message = `The agent could not complete the task: ${reason === '' ? 'it stated no reason' : reason}`
    throw new ParleyError('InternalError', {
      status: 502,
      message,
      data: { ...data, reason: 'task_failed' },
      headers,
    })
  }
  if (state === 'canceled')
    throw new ParleyError('Conflict', {
      message: 'The task was canceled. Send the message again to start another one.',
      data: { ...data, reason: 'task_canceled' },
      headers,
    })
  throw new ParleyError('Unavailable', {
    status: 504,
    message:
      'The agent is still working on this task. Use stream, or POST /v1/responses with background, for long tasks.',
    data: { ...data, reason: 'task_in_progress' },
    headers,
  })
}
