import type { StreamItem } from '../../model/event.ts'
import type { Frame, FrameWriter } from '../codec.ts'
import { deltaOut, eventOut, presentStatusOut } from './events.ts'
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
