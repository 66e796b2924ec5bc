import type { Artifact, TaskStatus } from './task.ts'
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

/** A piece of an artifact still in the making: for live readers only, without number, never stored. */
export interface ArtifactDelta {
  kind: 'artifact-delta'
  taskId: string
  contextId: string
  timestamp: Timestamp
  artifact: Artifact
}

/** As it is stored with its task: an artifact is named, not repeated. */
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
