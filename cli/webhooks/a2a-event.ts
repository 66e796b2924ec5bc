import type { ReadFrame } from '@parley/wire/codecs/codec'
import { defaultDialect, dialects } from '@parley/wire/codecs/dialects'
import { isJsonObject } from '@parley/wire/model/json-text'
import { isTerminal, type Part, type TaskState } from '@parley/wire/model/task'
import { oneLine } from '../terminal/printable.ts'

/** A delivery to a webhook that was set with an A2A dialect. It has no sequence number. */
export interface A2aEvent {
  taskId: string
  /** The state, if the delivery contains one. */
  state: TaskState | undefined
  isFinal: boolean
  /** The delivery as one line for people, without control sequences. */
  line: string
}

/** Reads a StreamResponse of A2A 1.0 or a task of A2A 0.3. */
export function readA2aEvent(json: unknown): A2aEvent | undefined {
  // A malformed event of Parley's own dialect.
  if (isJsonObject(json) && 'sequence' in json) return undefined
  for (const dialect of dialects) {
    const frame = dialect === defaultDialect ? undefined : dialect.readFrame(json)
    if (frame === undefined || frame.kind === 'error' || frame.kind === 'message') continue
    const taskId = frame.kind === 'task' ? frame.task.id : frame.taskId
    const state = stateIn(frame)
    const isFinal = state !== undefined && isTerminal(state)
    const said = `${dialect.title} ${saidBy(frame)}${isFinal ? ' (final)' : ''}`
    return { taskId, state, isFinal, line: `${oneLine(taskId.slice(0, 8))} ${oneLine(said, 160)}` }
  }
  return undefined
}

type TaskFrame = Exclude<ReadFrame, { kind: 'error' | 'message' }>

function stateIn(frame: TaskFrame): TaskState | undefined {
  if (frame.kind === 'task') return frame.task.status.state
  return frame.kind === 'status-update' ? frame.status.state : undefined
}

function saidBy(frame: TaskFrame): string {
  if (frame.kind === 'artifact-update')
    return `artifact ${frame.artifact.name}: ${textOf(frame.artifact.parts)}`
  const { state, message } = frame.kind === 'task' ? frame.task.status : frame.status
  const text = textOf(message?.parts ?? [])
  return `${state}${text === '' ? '' : `: ${text}`}`
}

const textOf = (parts: readonly Part[]) =>
  parts.map((part) => (part.kind === 'text' ? part.text : part.kind)).join(' ')
