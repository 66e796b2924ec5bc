import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { delta, type Output, part as outputPart, progress } from '@parley/agent/internal/author/output'
import type { ReadFrame } from '@parley/wire/codecs/codec'
import {
  type Artifact,
  isResting,
  isTerminal,
  type Message,
  type Part,
  type Task,
  type TaskStatus,
} from '@parley/wire/model/task'
import { InvalidAgentAnswer } from '../client/agent-errors.ts'

/** Limits on the output of a foreign agent for one task. */
const [artifactsMax, partsMax] = [1000, 20_000]
/** A progress message that is larger than this as JSON is replaced with the beginning of its text. */
const [progressMaxChars, progressTextMax] = [4000, 1000]

interface Received {
  artifact: Artifact
  bytes: number
  /** Identifies the artifact in deltas. */
  key: string
  /** Whether the deltas so far make up the parts, so that later ones can follow them. */
  isStreamed: boolean
}

/** The state of a task at a foreign agent, as far as its answers have reported it. */
export class ForeignTask {
  /** The agent's own IDs, once they are known. */
  taskId: string | undefined
  contextId: string | undefined
  status: TaskStatus | undefined
  /** An answer without a task. */
  message: Message | undefined
  #artifacts = new Map<string, Received>()
  readonly #maxBytes: number
  readonly #earlierPause: string | undefined
  #lastMessage: Message | undefined
  /** The parts of the newest progress message. */
  #progress: Part[] = []
  #bytes = 0

  /**
   * @param known the agent's own ID, if the task is known from an earlier message, and the pause that the message ends. Some
   * agents begin the answer with the task before the message, so a status of this pause is not a new one.
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

  get artifacts(): Pick<Received, 'artifact' | 'key'>[] {
    return [...this.#artifacts.values()]
  }

  /** The agent's last message in the task: that of the status, or else the newest of the history. */
  get lastMessage(): Message | undefined {
    return this.status?.message ?? this.#lastMessage
  }

  /**
   * Takes a frame; returns what it adds to the task while that is running: deltas and progress messages. A terminal state is
   * final: later frames change nothing.
   * @throws InvalidAgentAnswer
   */
  take(frame: Exclude<ReadFrame, { kind: 'error' }>): Output[] {
    if (this.message !== undefined || (this.status && isTerminal(this.status.state))) return []
    if (frame.kind === 'message') {
      this.#takeMessage(frame.message)
      return []
    }
    const { taskId, contextId } = frame.kind === 'task' ? { ...frame.task, taskId: frame.task.id } : frame
    this.taskId ??= taskId
    if (taskId !== this.taskId) throw new InvalidAgentAnswer('The agent sent a frame of another task')
    if (contextId !== '') this.contextId ??= contextId
    if (frame.kind === 'status-update') return this.#takeStatus(frame.status)
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

  #takeStatus(status: TaskStatus): Output[] {
    // A task that is running does not return to the queue.
    if (status.state === 'submitted' && this.status !== undefined) return []
    if (this.#earlierPause !== undefined && pauseIn(status) === this.#earlierPause) return []
    this.status = status
    const parts = status.message?.parts ?? []
    if (isResting(status.state) || parts.length === 0 || isDeepStrictEqual(parts, this.#progress)) return []
    this.#progress = parts
    return progressOf(parts)
  }

  /** A snapshot replaces the artifacts, except that one without artifacts keeps those that were streamed. */
  #takeTask(task: Task): Output[] {
    const reported = this.#takeStatus(task.status)
    this.#lastMessage = task.history.findLast(({ role }) => role !== 'user')
    if (task.artifacts.length === 0) return reported
    const before = this.#artifacts
    this.#artifacts = new Map()
    this.#bytes = 0
    return [...reported, ...task.artifacts.flatMap((artifact) => this.#takeArtifact(artifact, false, before))]
  }

  /** Adds the artifacts of a snapshot that this task lacks, before those that it has. @throws InvalidAgentAnswer */
  addEarlier(snapshot: readonly Artifact[]): void {
    const earlier = new ForeignTask(this.#maxBytes - this.#bytes)
    for (const artifact of snapshot)
      if (!this.#artifacts.has(artifact.artifactId)) earlier.#takeArtifact(artifact, false)
    if (earlier.#artifacts.size + this.#artifacts.size > artifactsMax)
      throw new InvalidAgentAnswer(`The agent's output has more than ${artifactsMax} artifacts`)
    this.#artifacts = new Map([...earlier.#artifacts, ...this.#artifacts])
  }

  #takeArtifact(artifact: Artifact, append: boolean, earlier = this.#artifacts): Output[] {
    const known = earlier.get(artifact.artifactId)
    const isAppended = append && known !== undefined
    const parts = isAppended ? joined(known.artifact.parts, artifact.parts) : artifact.parts
    const added = isAppended || known === undefined ? artifact.parts : addedParts(known.artifact.parts, parts)
    const bytes = Buffer.byteLength(JSON.stringify(artifact)) + (isAppended ? known.bytes : 0)
    this.#bytes += bytes - (this.#artifacts.get(artifact.artifactId)?.bytes ?? 0)
    if (this.#bytes > this.#maxBytes)
      throw new InvalidAgentAnswer(`The agent's output is larger than ${this.#maxBytes} bytes`)
    if (!this.#artifacts.has(artifact.artifactId) && this.#artifacts.size >= artifactsMax)
      throw new InvalidAgentAnswer(`The agent's output has more than ${artifactsMax} artifacts`)
    if (parts.length > partsMax)
      throw new InvalidAgentAnswer(`An artifact of the agent has more than ${partsMax} parts`)
    const name = artifact.name || (known?.artifact.name ?? '')
    const received = {
      artifact: { ...known?.artifact, ...artifact, name, parts },
      bytes,
      key: known?.key ?? randomUUID(),
      isStreamed: (known?.isStreamed ?? true) && added !== undefined,
    }
    this.#artifacts.set(artifact.artifactId, received)
    if (!received.isStreamed || added === undefined) return []
    return added.map((one) => delta(one, { key: received.key, name: artifactName(name) }))
  }
}

/** Returns the name of one of our artifacts. */
export const artifactName = (name: string) => (name === '' ? 'result' : name)

function progressOf(parts: Part[]): Output[] {
  if (JSON.stringify(parts).length <= progressMaxChars) return [progress(...parts.map(outputPart))]
  const texts = parts.flatMap((one) => (one.kind === 'text' ? [one.text.slice(0, progressTextMax)] : []))
  const text = texts.join(' ').slice(0, progressTextMax)
  return text === '' ? [] : [progress(text)]
}

/** Returns what a whole artifact adds to its earlier parts; undefined if it changes them. */
function addedParts(before: readonly Part[], after: readonly Part[]): Part[] | undefined {
  const last = before.length - 1
  for (const [i, part] of before.entries()) {
    const other = after[i]
    if (isDeepStrictEqual(part, other)) continue
    const isGrown = i === last && other !== undefined && isPlainText(part) && isPlainText(other)
    if (!isGrown || !other.text.startsWith(part.text)) return undefined
    return [{ kind: 'text', text: other.text.slice(part.text.length) }, ...after.slice(before.length)]
  }
  return after.slice(before.length)
}

function pauseIn({ state, timestamp, message }: TaskStatus): string | undefined {
  const isPaused = state === 'input-required' || state === 'auth-required'
  return isPaused ? `${state} ${timestamp} ${message?.messageId ?? ''}` : undefined
}

/** Whether the task is paused with another message than that of the known pause. Agents may state no times. */
export function asksAgain({ message }: TaskStatus, { pause }: { pause?: string | undefined }): boolean {
  if (pause === undefined || message === undefined || message.messageId === '') return false
  return !pause.endsWith(` ${message.messageId}`)
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
