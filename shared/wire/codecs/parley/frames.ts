import type { StreamItem } from '../../model/event.ts'
import type { Frame, FrameWriter, ReadFrame } from '../codec.ts'
import { readArtifact, readStatus } from './answers.ts'
import { readError } from './errors.ts'
import { deltaOut, eventOut, isEvent, positionOf, presentStatusOut } from './events.ts'
import { partOut } from './task.ts'

/** Each frame is one event. A frame's `id` is the event number, from which a client can resume. */
export function openStream(): FrameWriter {
  /** The artifacts for which the reader has received a delta. */
  const begun = new Set<string>()
  const write = (item: StreamItem): Frame => {
    if (item.kind === 'present-task') {
      const { task, sequence, event } = item
      return { id: sequence, data: event === undefined ? presentStatusOut(task, sequence) : eventOut(event) }
    }
    if (item.kind !== 'artifact-delta') return { id: item.sequence, data: eventOut(item) }
    const { artifactId } = item.artifact
    const isFirst = !begun.has(artifactId)
    begun.add(artifactId)
    return { data: deltaOut(item, isFirst) }
  }
  return { write, writePart: partOut }
}

/** A frame has no JSON-RPC envelope unless it is an error. */
export function readFrame(data: unknown): ReadFrame | undefined {
  const error = readError(data)
  if (error !== undefined) return { kind: 'error', error }
  if (!isEvent(data)) return undefined
  const { taskId, contextId } = positionOf(data)
  if (typeof contextId !== 'string') return undefined
  if (data.kind === 'status-update') {
    const status = readStatus(data.status)
    return status && { kind: data.kind, taskId, contextId, status }
  }
  const artifact = readArtifact(data.artifact)
  const lastChunk = data.last_chunk !== false
  return artifact && { kind: data.kind, taskId, contextId, artifact, append: data.append === true, lastChunk }
}
