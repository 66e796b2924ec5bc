import { isObject } from '../../jsonrpc/envelope.ts'
import type { ArtifactDelta, TaskEvent } from '../../model/event.ts'
import { isTerminal, type Task } from '../../model/task.ts'
import type { Unserialized, WireArtifactUpdate, WireEvent } from './shapes.ts'
import { artifactOut, statusOut } from './task.ts'

/** A numbered event, in streams, webhooks and the event log. */
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
 * A delta has neither an event id nor a number.
 * @param isFirst the first of its artifact on this stream, so that there is nothing to append to
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

/** The first frame of a stream: the present status of the task. Sequence 0: no event has happened yet. */
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

/** Whether a frame of a stream is an event. */
export function isEvent(json: unknown): json is WireEvent {
  if (!isObject(json)) return false
  const { kind, task_id: taskId } = json
  return (kind === 'status-update' || kind === 'artifact-update') && typeof taskId === 'string'
}

/** An event with a place in the event log of its task: every event but a delta. */
export type NumberedEvent = WireEvent & { event_id: string; sequence: number }

interface EventPosition {
  taskId: string
  contextId: string
  eventId?: string | undefined
  sequence?: number | undefined
}

/** Undefined where the JSON, the body of a webhook for example, is not an event with a number. */
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

/** The task of an event, and its place in the event log. */
export function positionOf(event: NumberedEvent): {
  [K in keyof EventPosition]-?: NonNullable<EventPosition[K]>
}
export function positionOf(event: WireEvent): EventPosition
export function positionOf(event: WireEvent) {
  const { task_id: taskId, context_id: contextId, event_id: eventId, sequence } = event
  return { taskId, contextId, eventId, sequence }
}

/** Whether an update carries a piece of an artifact and not the whole. */
export function isDelta({ append, last_chunk: lastChunk }: WireArtifactUpdate): boolean {
  return append === true || lastChunk === false
}
