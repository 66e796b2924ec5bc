import type { StreamItem } from '../../model/event.ts'
import type { Frame, FrameWriter } from '../codec.ts'
import { deltaOut, eventOut, presentStatusOut } from './events.ts'
import { partOut } from './task.ts'

/** Each frame is one event. The number of an event is its `id`, from which a client resumes. */
export function openStream(): FrameWriter {
  /** Artifacts of which the reader has received a delta. */
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
