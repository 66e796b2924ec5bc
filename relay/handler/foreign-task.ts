import type { ReadFrame } from '@parley/wire/codecs/codec'
import {
  type Artifact,
  isTerminal,
  type Message,
  type Part,
  type Task,
  type TaskStatus,
} from '@parley/wire/model/task'
import { InvalidAgentAnswer } from '../client/agent-errors.ts'

/** Limits on what a foreign agent sends for one task. */
const [artifactsMax, partsMax] = [1000, 20_000]

/** The state of a task at a foreign agent, as far as its answers have reported it. */
export class ForeignTask {
  /** The agent's own IDs, once they are known. */
  taskId: string | undefined
  contextId: string | undefined
  status: TaskStatus | undefined
  /** An answer without a task. */
  message: Message | undefined
  readonly #artifacts = new Map<string, Artifact>()
  readonly #maxBytes: number
  readonly #earlierPause: string | undefined
  #lastMessage: Message | undefined
  #bytes = 0

  /**
   * @param known the agent's own ID, if the task is known from an earlier message, and the pause that the message ends. Some
   * agents begin the answer with the task as it was, so a status of this pause is not a new one.
   */
  constructor(maxBytes: number, known: { taskId?: string | undefined; pause?: string | undefined } = {}) {
    this.#maxBytes = maxBytes
    this.taskId = known.taskId
    this.#earlierPause = known.pause
  }

  /** Identifies the current pause. Undefined if the task is not paused. */
  get pause(): string | undefined {
    const { status } = this
    return status === undefined ? undefined : pauseIn(status)
  }

  get artifacts(): Artifact[] {
    return [...this.#artifacts.values()]
  }

  /** The agent's last message in the task: that of the status, or else the newest of the history. */
  get lastMessage(): Message | undefined {
    return this.status?.message ?? this.#lastMessage
  }

  /**
   * Takes a frame; returns the parts that it adds to the first artifact, for streams. A terminal state is final: later frames
   * change nothing.
   * @throws InvalidAgentAnswer
   */
  take(frame: Exclude<ReadFrame, { kind: 'error' }>): Part[] {
    if (this.message !== undefined || (this.status && isTerminal(this.status.state))) return []
    if (frame.kind === 'message') {
      this.#takeMessage(frame.message)
      return []
    }
    const { taskId, contextId } = frame.kind === 'task' ? { ...frame.task, taskId: frame.task.id } : frame
    this.taskId ??= taskId
    if (taskId !== this.taskId) throw new InvalidAgentAnswer('The agent sent a frame of another task')
    if (contextId !== '') this.contextId = contextId
    if (frame.kind === 'status-update') {
      this.#takeStatus(frame.status)
      return []
    }
    if (frame.kind === 'task') return this.#takeTask(frame.task)
    return this.#takeArtifact(frame.artifact, frame.append)
  }

  #takeMessage(message: Message): void {
    if (message.taskId !== '' && this.taskId !== undefined) {
      if (message.taskId !== this.taskId)
        throw new InvalidAgentAnswer('The agent sent a message of another task')
      this.#lastMessage = message
      return
    }
    if (this.status !== undefined) {
      this.#lastMessage = message
      return
    }
    if (message.contextId !== '') this.contextId = message.contextId
    this.message = message
  }

  #takeStatus(status: TaskStatus): void {
    // A task that is running does not return to the queue.
    if (status.state === 'submitted' && this.status !== undefined) return
    if (this.#earlierPause !== undefined && pauseIn(status) === this.#earlierPause) return
    this.status = status
  }

  /** A snapshot replaces the artifacts, except that one without artifacts keeps those that were streamed. */
  #takeTask(task: Task): Part[] {
    this.#takeStatus(task.status)
    this.#lastMessage = task.history.findLast(({ role }) => role !== 'user')
    const known = new Set(this.#artifacts.keys())
    if (task.artifacts.length > 0) {
      this.#artifacts.clear()
      this.#bytes = 0
    }
    const added = task.artifacts.flatMap((artifact) => this.#takeArtifact(artifact, false))
    return known.size === 0 ? added : []
  }

  #takeArtifact(artifact: Artifact, append: boolean): Part[] {
    this.#bytes += Buffer.byteLength(JSON.stringify(artifact))
    if (this.#bytes > this.#maxBytes)
      throw new InvalidAgentAnswer(`The agent's output is larger than ${this.#maxBytes} bytes`)
    const known = this.#artifacts.get(artifact.artifactId)
    if (known === undefined && this.#artifacts.size >= artifactsMax)
      throw new InvalidAgentAnswer(`The agent's output has more than ${artifactsMax} artifacts`)
    const parts = append && known !== undefined ? joined(known.parts, artifact.parts) : artifact.parts
    if (parts.length > partsMax)
      throw new InvalidAgentAnswer(`An artifact of the agent has more than ${partsMax} parts`)
    this.#artifacts.set(artifact.artifactId, {
      ...known,
      ...artifact,
      name: artifact.name || (known?.name ?? ''),
      parts,
    })
    const [first] = this.#artifacts.keys()
    const isNew = known === undefined || append
    return first === artifact.artifactId && isNew ? artifact.parts : []
  }
}

function pauseIn({ state, timestamp, message }: TaskStatus): string | undefined {
  const isPaused = state === 'input-required' || state === 'auth-required'
  return isPaused ? `${state} ${timestamp} ${message?.messageId ?? ''}` : undefined
}

/** Appends parts; texts without other fields continue the last text, as agents send them word by word. */
function joined(before: readonly Part[], added: readonly Part[]): Part[] {
  const parts = [...before]
  for (const part of added) {
    const last = parts.at(-1)
    if (last !== undefined && isPlainText(last) && isPlainText(part))
      parts[parts.length - 1] = { kind: 'text', text: last.text + part.text }
    else parts.push(part)
  }
  return parts
}

function isPlainText(part: Part): part is Extract<Part, { kind: 'text' }> {
  return part.kind === 'text' && Object.keys(part).every((key) => key === 'kind' || key === 'text')
}
