import type { RequestId } from '../../jsonrpc/envelope.ts'
import type { StreamItem } from '../../model/event.ts'
import type { Frame, FrameWriter } from '../codec.ts'
import { artifactUpdateOut, statusUpdateOut } from './events.ts'
import { partOut, taskOut } from './task.ts'

/**
 * Each frame is a JSON-RPC response to the request; the first one holds the task. The frames of numbered events have the
 * number as `id`, from which a client can resume.
 */
export function openStream(requestId: RequestId): FrameWriter {
  /** The artifacts for which the reader has received a delta. */
  const begun = new Set<string>()
  const frame = (result: object, id?: number): Frame => {
    const data = { jsonrpc: '2.0', id: requestId, result }
    return id === undefined ? { data } : { id, data }
  }
  const write = (item: StreamItem): Frame => {
    if (item.kind === 'present-task') return frame(taskOut(item.task), item.sequence)
    if (item.kind === 'status-update') return frame(statusUpdateOut(item), item.sequence)
    if (item.kind === 'artifact-update')
      return frame(artifactUpdateOut(item, { append: false, lastChunk: true }), item.sequence)
    const { artifactId } = item.artifact
    const append = begun.has(artifactId)
    begun.add(artifactId)
    return frame(artifactUpdateOut(item, { append, lastChunk: false }))
  }
  return { write, writePart: partOut }
}
