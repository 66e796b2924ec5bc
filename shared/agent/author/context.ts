import type { Artifact, FileContent, JsonObject, Message, Part, Task } from '@parley/wire/model/task'
import type { Pause } from './output.ts'

/** The argument of a handler. A handler must treat everything in it as read-only. */
export interface HandlerContext<Input = unknown> {
  /** The text parts of the newest message, joined by line breaks. */
  text: string
  /** The data parts of the newest message, merged; later parts win. */
  data: JsonObject
  /** The file parts of the newest message. */
  files: InputFile[]
  /** The data of all messages of the caller to this task, merged and parsed by the `input` schema of the skill, if it has one. */
  input: Input
  /** The newest message; each part states whether it is `verified`. */
  message: InputMessage
  /**
   * The messages of this task, the newest last: after `ask` it contains the question and the answer. File parts of the caller
   * that name a `uri` carry its `bytes` too (spec/messages-and-artifacts.md#files-by-uri); those of earlier messages only if
   * they can still be fetched.
   */
  history: Message[]
  /** The tasks named by `referenceTaskIds`, in that order (spec/tasks.md#references). */
  references: Reference[]
  /** The conversation (spec/tasks.md#contexts): the newest 50 earlier tasks of the same context, oldest first. */
  context: { id: string; history: Reference[] }
  /** ID and context ID of the task, and how often it was started: more than once after a crash. */
  task: { id: string; contextId: string; starts: number }
  /** The client of the token, its DID if it is one, and whether the request was signed with the key of the DID. */
  caller: { id: string; did?: string; signed: boolean }
  /** The skill that the message names in `metadata.skill_id`, else the only skill of the agent, else undefined. */
  skillId: string | undefined
  /** MIME types that the caller accepts (spec/methods.md#output-modes); empty: any. */
  acceptedOutputModes: string[]
  /** Aborted when the task is canceled, its deadline passes or the process stops. */
  signal: AbortSignal
  /** A logger that adds the IDs of task and context. */
  log: HandlerLog
  /** Pauses the task in `input-required` until the next message of the caller. Use `return ask(…)` or `yield ask(…)`. */
  ask: (prompt: string, data?: JsonObject) => Pause
  /** Pauses the task in `auth-required` until the next message of the caller. */
  requireAuth: (prompt: string, data?: JsonObject) => Pause
  /**
   * Pauses the task in `payment-required` (spec/payments.md#unpaid-calls). `amount` is a decimal string in whole units, for
   * example `"0.01"`. The task fails if the agent has no `executionCost` or the amount is malformed.
   */
  requirePayment: (price: { amount: string; reason: string }) => Pause
  /**
   * Pauses the task in `negotiation-bid-submitted` (spec/tasks.md#bids); the caller answers with data `{accept: true}` or
   * `{accept: false}`. `amount` is a decimal string in whole units, `latencyMs` is in milliseconds.
   */
  bid: (offer: { amount: string; latencyMs?: number; note?: string }) => Pause
  /** Ends the task in `rejected` with the reason. */
  decline: (reason: string) => Pause
  /** Adds tokens of a language model to the metric `agent_llm_tokens_total` (spec/operations.md#metrics). */
  usage: (spent: { model: string; inputTokens: number; outputTokens: number }) => void
}

/** A message whose parts state whether their signatures are verified. */
export type InputMessage = Omit<Message, 'parts'> & { parts: InputPart[] }

/**
 * A part of a message (spec/messages-and-artifacts.md#signatures). `verified`: whether the signature of the part was made
 * with the key of the caller. Absent if the part has no signature, or the key of the caller cannot be read.
 */
export type InputPart = Part & { verified?: boolean }

/** A file part. `bytes` and `text` are decoded when they are read. */
export interface InputFile {
  /** The file name. */
  name: string | undefined
  /** The MIME type that the part states, else the one that the host of its `uri` sent. */
  mimeType: string | undefined
  /** Whether the signature of its part is verified, as in `InputPart`. */
  verified?: boolean
  /** The content. */
  bytes: Buffer
  /** The content as UTF-8 text. */
  text: string
}

/** Another task of the same owner: one that the message refers to, or an earlier one of the context. */
export interface Reference {
  /** The task ID. */
  id: string
  /** Its state (spec/tasks.md#states). */
  state: Task['status']['state']
  /** The text parts of its artifacts, joined by line breaks. */
  text: string
  /** Its artifacts. */
  artifacts: Artifact[]
  /** Its messages, oldest first; empty for a task of another agent. */
  history: Message[]
  /** The file parts of its artifacts. */
  files: InputFile[]
}

/** The logger of a handler. Each call takes a text, or fields and a text. */
export interface HandlerLog {
  debug(fields: object | string, text?: string): void
  info(fields: object | string, text?: string): void
  warn(fields: object | string, text?: string): void
  error(fields: object | string, text?: string): void
}

export type { FileContent }
