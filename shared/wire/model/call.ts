import type { TaskEvent } from './event.ts'
import type { JsonObject, Part, Role } from './task.ts'
import type { Timestamp } from './timestamp.ts'

/** A message as a caller sends it. The IDs of its task and context are optional. */
export interface IncomingMessage {
  role: Role
  parts: Part[]
  messageId: string
  contextId?: string | undefined
  taskId?: string | undefined
  referenceTaskIds?: string[] | undefined
  metadata?: JsonObject | undefined
}

/** A webhook as a caller registers it. */
export interface PushConfigInput {
  /** Unique within the task. */
  id: string
  url: string
  /** Sent to the receiver as a bearer token. */
  token?: string | undefined
  authentication?: JsonObject | undefined
}

export interface SendMessage {
  message: IncomingMessage
  configuration?:
    | {
        acceptedOutputModes?: string[] | undefined
        longRunning?: boolean | undefined
        pushNotificationConfig?: PushConfigInput | undefined
        /** How long the task may take, in milliseconds from the acceptance of the message. */
        deadlineMs?: number | undefined
      }
    | undefined
}

export interface OfTask {
  taskId: string
}

export interface ListPage {
  limit: number
  cursor?: string | undefined
}

/** The cursor is absent on the last page. */
export interface Page<Item> {
  items: Item[]
  nextCursor?: string
}

/** A webhook of a task and the state of its deliveries. */
export interface PushConfigState extends PushConfigInput {
  task: { id: string }
  longRunning: boolean
  health: {
    attempts: number
    delivered: number
    /** The number of undelivered events, by reason. */
    dropped: Record<string, number>
    /** The HTTP status of the last attempt that received an answer. */
    lastStatus?: number
    lastError?: string
    lastAttemptAt?: Timestamp
  }
}

export interface ContextSummary {
  id: string
  createdAt: Timestamp
  updatedAt: Timestamp
  /** Whether one of its tasks has not ended. */
  busy: boolean
  taskCount: number
  taskIds: string[]
}

/** A page of a task's event log. `more` is true if further events follow the page. */
export interface EventPage {
  taskId: string
  events: TaskEvent[]
  /** The number of the task's newest event. */
  lastSequence: number
  more: boolean
}
