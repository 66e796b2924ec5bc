import { isObject } from '../../jsonrpc/envelope.ts'
import type { ArtifactDelta, TaskEvent } from '../../model/event.ts'
import { isTerminal, type Task } from '../../model/task.ts'
import type { Unserialized, WireArtifactUpdate, WireEvent } from './shapes.ts'
import { artifactOut, statusOut } from './task.ts'

/** Writes a numbered event for streams, webhooks and the event log. */
export function eventOut(event: TaskEvent): Unserialized<WireEvent> {
  const envelope = {
    event_id: event.eventId,
    sequence: event.sequence,
    timestamp: event.timestamp,
    kind: event.kind,
    task_id: event.taskId,
    context_id: event.contextId,
  }
  return event.kind === 'status-update'
    ? { ...envelope, kind: event.kind, status: statusOut(event.status), final: event.final }
    : {
        ...envelope,
        kind: event.kind,
        artifact: artifactOut(event.artifact),
        append: false,
        last_chunk: true,
      }
}

/**
 * Writes a delta, which has neither an event ID nor a number.
 * @param isFirst whether it is the artifact's first delta on this stream and so has nothing to append to
 */
export function deltaOut(delta: ArtifactDelta, isFirst: boolean): Unserialized<WireEvent> {
  return {
    timestamp: delta.timestamp,
    kind: 'artifact-update',
    task_id: delta.taskId,
    context_id: delta.contextId,
    artifact: artifactOut(delta.artifact),
    append: !isFirst,
    last_chunk: false,
  }
}

/** Writes the first frame of a stream, the task's current status. Sequence 0 means that there has been no event yet. */
export function presentStatusOut(task: Task, sequence: number): Unserialized<WireEvent> {
  return {
    sequence,
    timestamp: task.status.timestamp,
    kind: 'status-update',
    task_id: task.id,
    context_id: task.contextId,
    status: statusOut(task.status),
    final: isTerminal(task.status.state),
  }
}

/** Whether a stream frame is an event. */
export function isEvent(json: unknown): json is WireEvent {
  if (!isObject(json)) return false
  const { kind, task_id: taskId } = json
  return (kind === 'status-update' || kind === 'artifact-update') && typeof taskId === 'string'
}

/** An event that is in its task's event log, which is every event except deltas. */
export type NumberedEvent = WireEvent & { event_id: string; sequence: number }

interface EventPosition {
  taskId: string
  contextId: string
  eventId?: string | undefined
  sequence?: number | undefined
}

/** Returns undefined if the JSON, for example a webhook body, is not a numbered event. */
export function readNumberedEvent(json: unknown): NumberedEvent | undefined {
  return isNumbered(json) ? json : undefined
}

function isNumbered(json: unknown): json is NumberedEvent {
  if (!isObject(json)) return false
  const { event_id: id, task_id: taskId, sequence, kind, status, artifact } = json
  if (!isId(id) || !isId(taskId)) return false
  if (typeof sequence !== 'number' || !Number.isSafeInteger(sequence) || sequence < 1) return false
  if (kind === 'status-update') return isObject(status) && typeof status['state'] === 'string'
  return kind === 'artifact-update' && isObject(artifact) && Array.isArray(artifact['parts'])
}

function isId(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && value.length <= 200
}

/** The task of an event, and the event's place in the log. */
export function positionOf(event: NumberedEvent): {
  [K in keyof EventPosition]-?: NonNullable<EventPosition[K]>
}
export function positionOf(event: WireEvent): EventPosition
export function positionOf(event: WireEvent) {
  const { task_id: taskId, context_id: contextId, event_id: eventId, sequence } = event
  return { taskId, contextId, eventId, sequence }
}

/** Whether an update carries only a piece of an artifact. */
export function isDelta({ append, last_chunk: lastChunk }: WireArtifactUpdate): boolean {
  return append === true || lastChunk === false
}
