import type {
  WireArtifact,
  WireArtifactUpdate,
  WirePart,
  WireStatusUpdate,
  WireTask,
} from '@parley/wire/codecs/parley/shapes'
import type { TaskState } from '@parley/wire/model/task'

/** Tasks and events in the form that agents send, for tests of clients. */

export const taskId = '11111111-1111-4111-8111-111111111111'
export const contextId = '22222222-2222-4222-8222-222222222222'
const timestamp = '2026-01-01T00:00:00.000001+00:00'

export function statusOf(state: TaskState, text?: string): WireTask['status'] {
  if (text === undefined) return { state, timestamp }
  const message = {
    kind: 'message' as const,
    role: 'agent' as const,
    parts: [{ kind: 'text' as const, text }],
    message_id: '33333333-3333-4333-8333-333333333333',
    context_id: contextId,
    task_id: taskId,
  }
  return { state, timestamp, message }
}

export function task(state: TaskState, more: { text?: string; artifacts?: WireArtifact[] } = {}): WireTask {
  return {
    kind: 'task',
    id: taskId,
    context_id: contextId,
    status: statusOf(state, more.text),
    history: [],
    artifacts: more.artifacts ?? [],
  }
}

const place = { timestamp, task_id: taskId, context_id: contextId }

export function status(sequence: number, state: TaskState, text?: string): WireStatusUpdate {
  const final = ['completed', 'failed', 'canceled', 'rejected'].includes(state)
  const event = { event_id: `event-${sequence}`, sequence, ...place }
  return { kind: 'status-update', ...event, status: statusOf(state, text), final }
}

/** The first frame of a stream, which is a snapshot of the task rather than a numbered event. */
export function present(sequence: number, state: TaskState): WireStatusUpdate {
  const { event_id: _, ...frame } = status(sequence, state)
  return frame
}

export function artifactOf(id: string, name: string, ...parts: WirePart[]): WireArtifact {
  return { artifact_id: id, name, parts }
}

export function artifactEvent(sequence: number, artifact: WireArtifact): WireArtifactUpdate {
  const event = { event_id: `event-${sequence}`, sequence, ...place }
  return { kind: 'artifact-update', ...event, artifact, append: false, last_chunk: true }
}

export function delta(artifactId: string, text: string): WireArtifactUpdate {
  return {
    kind: 'artifact-update',
    ...place,
    artifact: artifactOf(artifactId, 'answer', { kind: 'text', text }),
    append: true,
  }
}

export const textPart = (text: string): WirePart => ({ kind: 'text', text })
export const filePart = (name: string, content: string | Uint8Array, mimeType = 'text/plain'): WirePart => ({
  kind: 'file',
  file: { name, mimeType, bytes: Buffer.from(content as Uint8Array).toString('base64') },
})
