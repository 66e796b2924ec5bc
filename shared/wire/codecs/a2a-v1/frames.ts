import type { RequestId } from '../../jsonrpc/envelope.ts'
import type { StreamItem } from '../../model/event.ts'
import type { Frame, FrameWriter } from '../codec.ts'
import { deltaOut, eventOut } from './events.ts'
import { partOut, taskOut } from './task.ts'

/** Each frame is a JSON-RPC response. The first one has the task; the server closes the stream after the last one. */
export function openStream(id: RequestId): FrameWriter {
  return writer((result) => ({ jsonrpc: '2.0', id, result }))
}

/** Each frame is a StreamResponse without an envelope. */
export function openRestStream(): FrameWriter {
  return writer((response) => response)
}

function writer(wrap: (response: object) => object): FrameWriter {
  /** The artifacts for which the reader has received a piece. */
  const begun = new Set<string>()
  const write = (item: StreamItem): Frame => {
    if (item.kind === 'present-task') return { id: item.sequence, data: wrap({ task: taskOut(item.task) }) }
    if (item.kind !== 'artifact-delta') return { id: item.sequence, data: wrap(eventOut(item)) }
    const { artifactId } = item.artifact
    const isFirst = !begun.has(artifactId)
    begun.add(artifactId)
    return { data: wrap(deltaOut(item, isFirst)) }
  }
  return { write, writePart: partOut }
}
