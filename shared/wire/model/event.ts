import type { Artifact, ContextRef, Task, TaskStatus } from './task.ts'
import type { Timestamp } from './timestamp.ts'

/** The envelope of an event (spec/events.md#envelope). */
interface EventEnvelope extends ContextRef {
  eventId: string
  /** Increases from 1 within each task. */
  sequence: number
  timestamp: Timestamp
  taskId: string
}

export interface StatusUpdate extends EventEnvelope {
  kind: 'status-update'
  status: TaskStatus
  /** True for terminal states. */
  final: boolean
}

export interface ArtifactUpdate extends EventEnvelope {
  kind: 'artifact-update'
  artifact: Artifact
}

export type TaskEvent = StatusUpdate | ArtifactUpdate

/** A piece of an unfinished artifact. It has no number, is sent only to live readers and is never stored. */
export interface ArtifactDelta extends ContextRef {
  kind: 'artifact-delta'
  taskId: string
  timestamp: Timestamp
  artifact: Artifact
}

/** The task's state when a stream opens. */
export interface PresentTask {
  kind: 'present-task'
  task: Task
  /** The number of its last event. */
  sequence: number
  /** The event that set the current status, if there is one. */
  event?: TaskEvent | undefined
}

/** An item of a stream. */
export type StreamItem = PresentTask | TaskEvent | ArtifactDelta

/** An event as stored with its task. It refers to an artifact by its ID. */
export type StoredEvent =
  | {
      eventId: string
      sequence: number
      timestamp: Timestamp
      kind: 'status-update'
      status: TaskStatus
      final: boolean
    }
  | { eventId: string; sequence: number; timestamp: Timestamp; kind: 'artifact-update'; artifactId: string }
