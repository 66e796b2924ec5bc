import type { Timestamp } from './timestamp.ts'

/** The task model, in camelCase. Codecs translate it to and from the wire format. */

export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue }
export type JsonObject = { [key: string]: JsonValue }

export const terminalStates = ['completed', 'failed', 'canceled', 'rejected'] as const
export const pausedStates = [
  'input-required',
  'auth-required',
  'payment-required',
  'negotiation-bid-submitted',
] as const
export const taskStates = ['submitted', 'working', ...pausedStates, ...terminalStates] as const

export type TerminalState = (typeof terminalStates)[number]
export type PausedState = (typeof pausedStates)[number]
export type TaskState = (typeof taskStates)[number]

const terminal = new Set<TaskState>(terminalStates)
const paused = new Set<TaskState>(pausedStates)

export const isTerminal = (state: TaskState): state is TerminalState => terminal.has(state)
export const isPaused = (state: TaskState): state is PausedState => paused.has(state)
/** Whether the task is waiting for its caller or has ended. */
export const isResting = (state: TaskState): boolean => isTerminal(state) || isPaused(state)

/** A part of a message or artifact. The `bytes` of a file are base64 (spec/messages-and-artifacts.md#part). */
export type Part =
  | ({ kind: 'text'; text: string; metadata?: JsonObject } & ContentHints)
  | ({ kind: 'data'; data: JsonObject; metadata?: JsonObject } & ContentHints)
  | { kind: 'file'; file: FileContent; metadata?: JsonObject }

/** The properties of a text or data part that some dialects have. */
export interface ContentHints {
  mediaType?: string
  filename?: string
}

export interface FileContent {
  name?: string
  mimeType?: string
  bytes?: string
  uri?: string
}

/** How a task ended at its agent: completed or failed, not canceled by its caller. */
export interface TaskEnd {
  state: 'completed' | 'failed'
  /** In milliseconds since 1970; absent if the agent did not report the time. */
  at?: number
}

export type Role = 'user' | 'agent' | 'assistant' | 'system'

export interface Message extends ContextRef {
  role: Role
  parts: Part[]
  messageId: string
  /** The message ID as the client wrote it, if it is not a UUID in lower case. */
  messageName?: string
  taskId: string
  referenceTaskIds?: string[]
  /** URIs of the A2A extensions that the message uses. */
  extensions?: string[]
  metadata?: JsonObject
}

/** The ID of a context, and the client's own ID for it if that is not a UUID in lower case (`idsOf`). */
export interface ContextRef {
  contextId: string
  contextName?: string
}

/** Returns the context of a task, a message or an event. */
export function contextOf({ contextId, contextName }: ContextRef): ContextRef {
  return contextName === undefined ? { contextId } : { contextId, contextName }
}

export interface Artifact {
  artifactId: string
  name: string
  description?: string
  parts: Part[]
  /** URIs of the A2A extensions that the artifact uses. */
  extensions?: string[]
  metadata?: JsonObject
}

export interface TaskStatus {
  state: TaskState
  timestamp: Timestamp
  message?: Message
  /** Absent for a task without payments that has never paused for one. */
  payment?: StatusPayment
}

/** The payments of a task at the time of a status (spec/payments.md#x402-over-a2a). */
export interface StatusPayment {
  status:
    | 'payment-required'
    | 'payment-rejected'
    | 'payment-verified'
    | 'payment-completed'
    | 'payment-failed'
  /** The terms of the payment that the task waits for, as the body of an x402 response. */
  required?: JsonObject
  /** The outcomes of its payments, oldest first: all settled ones and the newest refused ones. */
  receipts?: PaymentReceipt[]
  /** Why the last payment was refused: a code of the x402 extension of A2A. */
  error?: string
}

/** The outcome of a settlement, as x402 defines it. */
export interface PaymentReceipt {
  success: boolean
  /** The hash of the transaction; empty if there is none. */
  transaction: string
  /** The name of the network in the terms. */
  network: string
  payer?: string
  errorReason?: string
}

/** A task from its owner's point of view. */
export interface Task extends ContextRef {
  id: string
  status: TaskStatus
  history: Message[]
  artifacts: Artifact[]
  /** Whether the agent answers only with the final status message. Dialects with such answers leave out the task. */
  answersByMessage?: boolean
  /** The task that created this one at another agent (spec/delegation.md#parent-and-children). */
  parent?: TaskLink
  /** The first task of the chain, as the calling agent states it. */
  rootTaskId?: string
  /** The tasks that this one created at other agents. The links of calls that are not yet answered may be incomplete. */
  children?: Partial<TaskLink>[]
}

/** A task of another agent: the client ID or the slug of the agent, and the task's ID. */
export interface TaskLink {
  agent: string
  taskId: string
}
