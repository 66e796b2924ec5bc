import type { ArtifactDelta, TaskEvent } from '../../model/event.ts'
import { artifactOut, statusOut } from './task.ts'

/** Writes a numbered event as a StreamResponse. */
export function eventOut(event: TaskEvent) {
  const ids = idsOut(event)
  if (event.kind === 'status-update')
    return { statusUpdate: { ...ids, status: statusOut(event.status, event) } }
  return {
    artifactUpdate: { ...ids, artifact: artifactOut(event.artifact), append: false, lastChunk: true },
  }
}

/**
 * Writes a piece of an artifact. The whole artifact, which replaces the pieces, follows.
 * @param isFirst whether it is the artifact's first piece on this stream and so has nothing to append to
 */
export function deltaOut(delta: ArtifactDelta, isFirst: boolean) {
  const artifact = artifactOut(delta.artifact)
  return { artifactUpdate: { ...idsOut(delta), artifact, append: !isFirst, lastChunk: false } }
}

function idsOut({ taskId, contextId, contextName }: TaskEvent | ArtifactDelta) {
  return { taskId, contextId: contextName ?? contextId }
}
