import type { FileContent, JsonObject, Role, TaskState } from '../../model/task.ts'

/** A shape before serialization, which may have undefined fields because `JSON.stringify` omits them. */
export type Unserialized<T> = T extends readonly (infer Item)[]
  ? Unserialized<Item>[]
  : T extends object
    ? string extends keyof T
      ? T
      : { [K in keyof T]: Unserialized<T[K]> | (object extends Pick<T, K> ? undefined : never) }
    : T

/** A part of a message or artifact (spec/messages-and-artifacts.md#part). */
export type WirePart =
  | { kind: 'text'; text: string; metadata?: JsonObject }
  | { kind: 'data'; data: JsonObject; metadata?: JsonObject }
  | { kind: 'file'; file: WireFile; metadata?: JsonObject }

/** Output uses `mime_type`; callers may also send `mimeType`. `bytes` is base64. */
export interface WireFile extends FileContent {
  mime_type?: string
}

/** A message of a task (spec/messages-and-artifacts.md#message). */
export interface WireMessage {
  kind: 'message'
  role: Role
  parts: WirePart[]
  message_id: string
  context_id: string
  task_id: string
  reference_task_ids?: string[]
  metadata?: JsonObject
}

/** The state of a task, when it began, and the agent's message about it (spec/tasks.md#taskstatus). */
export interface WireStatus {
  state: TaskState
  timestamp: string
  message?: WireMessage
}

/** A result of a task. */
export interface WireArtifact {
  artifact_id: string
  name: string
  description?: string
  parts: WirePart[]
  metadata?: JsonObject
}

/** A task as its owner sees it (spec/tasks.md#task). */
export interface WireTask {
  kind: 'task'
  id: string
  context_id: string
  status: WireStatus
  history: WireMessage[]
  artifacts: WireArtifact[]
  /** Absent unless the task belongs to a chain of agents. */
  metadata?: WireTaskMetadata
}

/** The tasks that are related to a task by delegation (spec/delegation.md#parent-and-children). */
export interface WireTaskMetadata {
  /** The calling agent's client ID and task. */
  parent?: WireTaskLink
  root_task_id?: string
  children?: WireTaskLink[]
  /** The parts of the request, if a gateway has split it (spec/gateway-routing.md#several-needs). */
  chain?: WireChainLink[]
}

/** A part of a split request, and the task of the agent that serves it. `task_id` is absent before the task exists. */
export interface WireChainLink {
  position: number
  agent?: string
  task_id?: string
  state: string
}

/** A task of another agent. */
export interface WireTaskLink {
  agent: string
  task_id: string
}

/** A change of state. Numbered events have `event_id` and `sequence`; the first frame of a new task has sequence 0. */
export interface WireStatusUpdate {
  kind: 'status-update'
  event_id?: string
  sequence?: number
  timestamp: string
  task_id: string
  context_id: string
  status: WireStatus
  final: boolean
}

/**
 * An artifact or, with `last_chunk: false`, a delta of one. Deltas have no number, and the whole artifact follows. The first
 * delta of an artifact has `append: false`; later ones have `append: true`.
 */
export interface WireArtifactUpdate {
  kind: 'artifact-update'
  event_id?: string
  sequence?: number
  timestamp: string
  task_id: string
  context_id: string
  artifact: WireArtifact
  append?: boolean
  last_chunk?: boolean
}

/** An event of a task (spec/events.md#envelope). */
export type WireEvent = WireStatusUpdate | WireArtifactUpdate

/** A message to send (spec/methods.md#messagesend). */
export interface OutgoingMessage {
  /** Becomes a text part before `parts`. */
  text?: string
  parts?: WirePart[]
  role?: Role
  messageId?: string
  contextId?: string
  taskId?: string
  referenceTaskIds?: string[]
  metadata?: JsonObject
}

/** PushNotificationConfig (spec/webhooks.md#pushnotificationconfig). */
export interface WirePushConfig {
  /** A UUID, unique within the task. */
  id: string
  url: string
  /** Sent to the receiver as a bearer token. */
  token?: string
  authentication?: JsonObject
}

/** A webhook of a task and the state of its deliveries. */
export interface WireTaskPushConfig {
  /** The task ID. */
  id: string
  push_notification_config: WirePushConfig
  long_running: boolean
  attempts: number
  delivered: number
  /** The number of undelivered events, by reason. */
  dropped: Record<string, number>
  last_status: number | null
  last_error: string | null
  last_attempt_at: string | null
}

/** A page of an event log. `more` is true if further events follow the last one. */
export interface WireEventPage {
  task_id: string
  events: WireEvent[]
  last_sequence: number
  more: boolean
}

/** The `configuration` of `message/send` and `message/stream`. */
export interface SendConfiguration {
  acceptedOutputModes?: string[]
  long_running?: boolean
  push_notification_config?: WirePushConfig
  /** How long the task may take in total, in milliseconds (spec/delegation.md#deadlines). */
  deadline_ms?: number
  [key: string]: unknown
}

/** The results of the methods that a client calls, by operation. */
export interface WireResults {
  sendMessage: WireTask
  streamMessage: never
  getTask: WireTask
  listTasks: WireTask[]
  cancelTask: WireTask
  listTaskEvents: WireEventPage
  resubscribe: never
  setPushConfig: WireTaskPushConfig
  getPushConfig: WireTaskPushConfig
  listPushConfigs: WireTaskPushConfig[]
  deletePushConfig: WireTaskPushConfig
}
