import type { FileContent, JsonObject, Role, TaskState } from '../../model/task.ts'

/** What an agent answers, in the spelling of the wire (spec/tasks.md#task and spec/events.md#envelope). */

/** A shape before it is serialized: `JSON.stringify` leaves out fields that are undefined. */
export type Unserialized<T> = T extends readonly (infer Item)[]
  ? Unserialized<Item>[]
  : T extends object
    ? string extends keyof T
      ? T
      : { [K in keyof T]: Unserialized<T[K]> | (object extends Pick<T, K> ? undefined : never) }
    : T

export type WirePart =
  | { kind: 'text'; text: string; metadata?: JsonObject }
  | { kind: 'data'; data: JsonObject; metadata?: JsonObject }
  | { kind: 'file'; file: WireFile; metadata?: JsonObject }

/** The one object that keeps its camelCase name on the way out as well: `mimeType`. */
export interface WireFile extends FileContent {
  mime_type?: string
}

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

export interface WireStatus {
  state: TaskState
  timestamp: string
  message?: WireMessage
}

export interface WireArtifact {
  artifact_id: string
  name: string
  parts: WirePart[]
}

export interface WireTask {
  kind: 'task'
  id: string
  context_id: string
  status: WireStatus
  history: WireMessage[]
  artifacts: WireArtifact[]
}

/** Numbered events carry `event_id` and `sequence`; the first frame of a new task has sequence 0. */
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
 * With `last_chunk: false` it is a delta for live readers: no number, replaced by the whole artifact that follows. The first
 * delta of an artifact has `append: false`, those after it `append: true`.
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
  /** A UUID; a task has each id once. */
  id: string
  url: string
  /** Sent to the receiver as bearer credential. */
  token?: string
  authentication?: JsonObject
}

/** A webhook of a task, and how its deliveries went. */
export interface WireTaskPushConfig {
  /** Of the task. */
  id: string
  push_notification_config: WirePushConfig
  long_running: boolean
  attempts: number
  delivered: number
  /** Events that were given up, by reason. */
  dropped: Record<string, number>
  last_status: number | null
  last_error: string | null
  last_attempt_at: string | null
}

/** A page of `tasks/events`; `more`: read on behind the last one. */
export interface WireEventPage {
  task_id: string
  events: WireEvent[]
  last_sequence: number
  more: boolean
}

/** `configuration` of `message/send` and `message/stream`. */
export interface SendConfiguration {
  acceptedOutputModes?: string[]
  long_running?: boolean
  push_notification_config?: WirePushConfig
  [key: string]: unknown
}
