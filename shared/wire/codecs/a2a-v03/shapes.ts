import type { FileContent, JsonObject } from '../../model/task.ts'

/** The JSON of A2A 0.3 (specification v0.3.0, `types/src/types.ts`), as this dialect writes it. */

export type WirePart =
  | { kind: 'text'; text: string; metadata?: JsonObject }
  | { kind: 'data'; data: JsonObject; metadata?: JsonObject }
  | { kind: 'file'; file: FileContent; metadata?: JsonObject }

export interface WireMessage {
  kind: 'message'
  role: WireRole
  parts: WirePart[]
  messageId: string
  contextId?: string
  taskId?: string
  referenceTaskIds?: string[]
  extensions?: string[]
  metadata?: JsonObject
}

export type WireRole = 'user' | 'agent'

export type WireState =
  | 'submitted'
  | 'working'
  | 'input-required'
  | 'auth-required'
  | 'completed'
  | 'failed'
  | 'canceled'
  | 'rejected'

export interface WireStatus {
  state: WireState
  timestamp: string
  message?: WireMessage
}

export interface WireArtifact {
  artifactId: string
  name?: string
  description?: string
  parts: WirePart[]
  extensions?: string[]
  metadata?: JsonObject
}

export interface WireTask {
  kind: 'task'
  id: string
  contextId: string
  status: WireStatus
  history: WireMessage[]
  artifacts: WireArtifact[]
  /** The tasks that are related to the task by delegation (spec/delegation.md#parent-and-children). */
  metadata?: object
}

/** `final` is true on the last frame of a stream: the task has ended or waits for its client. */
export interface WireStatusUpdate {
  kind: 'status-update'
  taskId: string
  contextId: string
  status: WireStatus
  final: boolean
}

/** `append: false` replaces an artifact that has the same ID. */
export interface WireArtifactUpdate {
  kind: 'artifact-update'
  taskId: string
  contextId: string
  artifact: WireArtifact
  append: boolean
  lastChunk: boolean
}

export interface WirePushConfig {
  /** Absent only in requests. */
  id?: string
  url: string
  token?: string
  authentication?: { schemes: string[]; credentials?: string }
}

export interface WireTaskPushConfig {
  taskId: string
  pushNotificationConfig: WirePushConfig
}
