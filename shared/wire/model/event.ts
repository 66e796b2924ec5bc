import type { Artifact, Task, TaskStatus } from './task.ts'
import type { Timestamp } from './timestamp.ts'

/** The envelope of an event (spec/events.md#envelope). */
interface EventEnvelope {
  eventId: string
  /** Per task, increasing from 1. */
  sequence: number
  timestamp: Timestamp
  taskId: string
  contextId: string
}

export interface StatusUpdate extends EventEnvelope {
  kind: 'status-update'
  status: TaskStatus
  /** True on terminal states. */
  final: boolean
}

export interface ArtifactUpdate extends EventEnvelope {
  kind: 'artifact-update'
  artifact: Artifact
}

export type TaskEvent = StatusUpdate | ArtifactUpdate

/** A piece of an unfinished artifact: sent to live readers only, without a number, never stored. */
export interface ArtifactDelta {
  kind: 'artifact-delta'
  taskId: string
  contextId: string
  timestamp: Timestamp
  artifact: Artifact
}

/** The task as it is when a stream opens. */
export interface PresentTask {
  kind: 'present-task'
  task: Task
  /** Number of its last event. */
  sequence: number
  /** The event that brought the present status, where there is one. */
  event?: TaskEvent | undefined
}

/** An item of a stream. */
export type StreamItem = PresentTask | TaskEvent | ArtifactDelta

/** An event as it is stored with its task: an artifact is referenced by its id. */
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
