import type {
  ContextSummary,
  EventPage,
  ListPage,
  OfTask,
  Page,
  PushConfigInput,
  PushConfigState,
  SendMessage,
} from './call.ts'
import type { AgentCard } from './card.ts'
import type { JsonObject, Task, TaskState } from './task.ts'
import type { Timestamp } from './timestamp.ts'

/**
 * The operations of the JSON-RPC API, each with the scope that the token needs and the target by which a gateway routes it.
 * A dialect maps each operation to a method name.
 */
export const operations = {
  sendMessage: { scope: 'agent:write', target: 'message' },
  streamMessage: { scope: 'agent:write', target: 'message' },
  getTask: { scope: 'agent:read', target: 'task' },
  listTasks: { scope: 'agent:read', target: 'tasks' },
  cancelTask: { scope: 'agent:write', target: 'task' },
  giveFeedback: { scope: 'agent:write', target: 'task' },
  listTaskEvents: { scope: 'agent:read', target: 'task' },
  resubscribe: { scope: 'agent:read', target: 'task' },
  setPushConfig: { scope: 'agent:write', target: 'task' },
  getPushConfig: { scope: 'agent:read', target: 'task' },
  listPushConfigs: { scope: 'agent:read', target: 'task' },
  deletePushConfig: { scope: 'agent:write', target: 'task' },
  listContexts: { scope: 'agent:read', target: 'contexts' },
  clearContext: { scope: 'agent:write', target: 'context' },
  getExtendedCard: { scope: 'agent:read', target: 'server' },
} as const satisfies Record<string, OperationRow>

interface OperationRow {
  scope: 'agent:read' | 'agent:write'
  target: Target
}

/** The subject of a call: a message, a task, a context, all of the caller's tasks or contexts, or the server itself. */
export type Target = 'message' | 'task' | 'context' | 'tasks' | 'contexts' | 'server'

export type Operation = keyof typeof operations

/** The params and the result of every operation. A stream has items instead of a result. */
export interface Calls {
  sendMessage: { params: SendMessage; result: Task }
  streamMessage: { params: SendMessage; result: never }
  getTask: { params: OfTask & { historyLength?: number | undefined }; result: Task }
  listTasks: {
    params: ListPage & {
      contextId?: string | undefined
      /** Only tasks in one of these states. */
      states?: readonly TaskState[] | undefined
      historyLength?: number | undefined
      /** Default true. */
      includeArtifacts?: boolean | undefined
      /** Only tasks whose status is as new as this or newer, in the order by status. */
      statusSince?: Timestamp | undefined
      /** Newest first: by creation (default) or by status. */
      order?: 'created' | 'status' | undefined
      /** Whether the result has a total. */
      count?: boolean | undefined
    }
    result: Page<Task & { createdAt: Timestamp }>
  }
  cancelTask: { params: OfTask; result: Task }
  giveFeedback: {
    params: OfTask & { feedback: string; rating?: number | undefined; metadata?: JsonObject | undefined }
    result: OfTask
  }
  listTaskEvents: { params: OfTask & { afterSequence: number; limit: number }; result: EventPage }
  /** @throws ParleyError UnsupportedOperation for an ended task if `requireOpen` is set */
  resubscribe: {
    params: OfTask & { afterSequence?: number | undefined; requireOpen?: boolean | undefined }
    result: never
  }
  setPushConfig: {
    params: OfTask & { longRunning: boolean; pushNotificationConfig: PushConfigInput }
    result: PushConfigState
  }
  getPushConfig: {
    params: OfTask & { pushNotificationConfigId?: string | undefined }
    result: PushConfigState
  }
  listPushConfigs: { params: OfTask & Partial<ListPage>; result: Page<PushConfigState> }
  deletePushConfig: {
    /** `idempotent`: a missing config is a success without a result. */
    params: OfTask & { pushNotificationConfigId: string; idempotent?: boolean | undefined }
    result: PushConfigState | undefined
  }
  listContexts: { params: ListPage; result: Page<ContextSummary> }
  clearContext: { params: { contextId: string }; result: { contextId: string } }
  getExtendedCard: { params: object; result: AgentCard }
}
