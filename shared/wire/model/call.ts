import type { TaskEvent } from './event.ts'
import type { JsonObject, Part, Role } from './task.ts'
import type { Timestamp } from './timestamp.ts'

/** A message as a caller sends it: the ids of its task and context are optional. */
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
  /** Sent to the receiver as bearer credential. */
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
    /** Events that were given up, by reason. */
    dropped: Record<string, number>
    /** HTTP status of the last attempt that was answered. */
    lastStatus?: number
    lastError?: string
    lastAttemptAt?: Timestamp
  }
}

export interface ContextSummary {
  id: string
  createdAt: Timestamp
  updatedAt: Timestamp
  /** It has a task that has not ended. */
  busy: boolean
  taskCount: number
  taskIds: string[]
}

/** A page of a task's event log; `more`: events follow the last one of the page. */
export interface EventPage {
  taskId: string
  events: TaskEvent[]
  /** Number of the newest event of the task. */
  lastSequence: number
  more: boolean
}
