import type { ArtifactDelta, ArtifactUpdate, StatusUpdate } from '../../model/event.ts'
import { isResting } from '../../model/task.ts'
import type { Unserialized } from '../parley/shapes.ts'
import type { WireArtifactUpdate, WireStatusUpdate } from './shapes.ts'
import { artifactOut, statusOut } from './task.ts'

/** A pause ends the stream, so it is final for the stream although the task continues after the client's message. */
export function statusUpdateOut(event: StatusUpdate): Unserialized<WireStatusUpdate> {
  return {
    kind: 'status-update',
    taskId: event.taskId,
    contextId: event.contextName ?? event.contextId,
    status: statusOut(event.status, event),
    final: isResting(event.status.state),
  }
}

export function artifactUpdateOut(
  event: ArtifactUpdate | ArtifactDelta,
  { append, lastChunk }: Pick<WireArtifactUpdate, 'append' | 'lastChunk'>,
): Unserialized<WireArtifactUpdate> {
  return {
    kind: 'artifact-update',
    taskId: event.taskId,
    contextId: event.contextName ?? event.contextId,
    artifact: artifactOut(event.artifact),
    append,
    lastChunk,
  }
}
