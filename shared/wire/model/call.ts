import type { TaskEvent } from './event.ts'
import type { JsonObject, Part, Role } from './task.ts'
import type { Timestamp } from './timestamp.ts'

/** A message as a caller sends it. The IDs of its task and context are optional. */
export interface IncomingMessage {
  role: Role
  parts: Part[]
  messageId: string
  /** The IDs as the client wrote them, if they are not UUIDs in lower case (`idsOf`). */
  messageName?: string | undefined
  contextName?: string | undefined
  contextId?: string | undefined
  taskId?: string | undefined
  referenceTaskIds?: string[] | undefined
  /** URIs of the A2A extensions that the message uses. */
  extensions?: string[] | undefined
  metadata?: JsonObject | undefined
}

/** A webhook as a caller registers it. */
export interface PushConfigInput {
  /** Unique within the task. If absent, the server makes one. */
  id?: string | undefined
  /** The ID as the client wrote it, if it is not a UUID in lower case. */
  name?: string | undefined
  url: string
  /** Identifies the task to the receiver. The dialect determines the header. */
  token?: string | undefined
  authentication?: JsonObject | undefined
  /** Sent to the receiver as `Authorization: {scheme} {credentials}`. */
  credentials?: { scheme: string; credentials: string } | undefined
  /** The name of the dialect in which deliveries are written; absent for the default one. */
  dialect?: string | undefined
}

export interface SendMessage {
  message: IncomingMessage
  /** Whether `message.taskId` has to name an existing task. Otherwise the caller may choose the ID of a new task. */
  continues?: boolean | undefined
  /** Whether a message that has to be paid first becomes a paused task. Otherwise it is refused. */
  pausesUnpaid?: boolean | undefined
  configuration?:
    | {
        acceptedOutputModes?: string[] | undefined
        longRunning?: boolean | undefined
        pushNotificationConfig?: PushConfigInput | undefined
        /** How long the task may take, in milliseconds from the acceptance of the message. */
        deadlineMs?: number | undefined
        /** Whether to answer when the task has ended or paused instead of when it is stored. */
        wait?: boolean | undefined
        /** Like `wait`, for this long at most, in milliseconds. The answer is then the task as it is. */
        waitMs?: number | undefined
        /** The number of newest messages in the answer. */
        historyLength?: number | undefined
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
  /** The largest number of items on the page, if the method reports it. */
  limit?: number
  /** The number of items on all pages, if the call asks for it. */
  total?: number
}

/** A webhook of a task and the state of its deliveries. */
export interface PushConfigState extends PushConfigInput {
  id: string
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
