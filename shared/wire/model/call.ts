import type { AgentCard } from './card.ts'
import type { TaskEvent } from './event.ts'
import type { JsonObject, Part, Role, Task, TaskState } from './task.ts'
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

interface OfTask {
  taskId: string
}

interface ListPage {
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

/** Params and result of every operation, in the model's spelling. A stream has no result: it answers with stream items. */
export interface Calls {
  sendMessage: { params: SendMessage; result: Task }
  streamMessage: { params: SendMessage; result: never }
  getTask: { params: OfTask & { historyLength?: number | undefined }; result: Task }
  listTasks: {
    params: ListPage & {
      contextId?: string | undefined
      state?: TaskState | undefined
      historyLength?: number | undefined
    }
    result: Page<Task & { createdAt: Timestamp }>
  }
  cancelTask: { params: OfTask; result: Task }
  giveFeedback: {
    params: OfTask & { feedback: string; rating?: number | undefined; metadata?: JsonObject | undefined }
    result: OfTask
  }
  listTaskEvents: { params: OfTask & { afterSequence: number; limit: number }; result: EventPage }
  resubscribe: { params: OfTask & { afterSequence?: number | undefined }; result: never }
  setPushConfig: {
    params: OfTask & { longRunning: boolean; pushNotificationConfig: PushConfigInput }
    result: PushConfigState
  }
  getPushConfig: {
    params: OfTask & { pushNotificationConfigId?: string | undefined }
    result: PushConfigState
  }
  listPushConfigs: { params: OfTask; result: PushConfigState[] }
  deletePushConfig: { params: OfTask & { pushNotificationConfigId: string }; result: PushConfigState }
  listContexts: { params: ListPage; result: Page<ContextSummary> }
  clearContext: { params: { contextId: string }; result: { contextId: string } }
  getExtendedCard: { params: object; result: AgentCard }
}
