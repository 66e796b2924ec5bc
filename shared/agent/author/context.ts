import type { Artifact, FileContent, JsonObject, Message, Part, Task } from '@parley/wire/model/task'
import type { Agents } from './agents.ts'
import type { Content, Pause, Reply } from './output.ts'

/** The argument of a handler. A handler must treat everything in it as read-only. */
export interface HandlerContext<Input = unknown> {
  /** The text parts of the newest message, joined by line breaks. */
  text: string
  /** The data parts of the newest message, merged; later parts win. */
  data: JsonObject
  /** The file parts of the newest message. */
  files: InputFile[]
  /** The data of all the caller's messages to this task, merged and parsed by the skill's `input` schema, if it has one. */
  input: Input
  /** The newest message; each part states whether it is `verified`. */
  message: InputMessage
  /**
   * The messages of this task, newest last. After `ask` they include the question and the answer. The caller's file parts
   * that have a `uri` also carry its `bytes` (spec/messages-and-artifacts.md#files-by-uri); those of earlier messages only if
   * they can still be fetched.
   */
  history: Message[]
  /** The tasks named by `referenceTaskIds`, in that order (spec/tasks.md#references). */
  references: Reference[]
  /**
   * The conversation (spec/tasks.md#contexts): the newest 50 earlier tasks of the same context, oldest first. A conversation that
   * the client states (spec/messages-and-artifacts.md#conversation) comes before them.
   */
  context: { id: string; history: Reference[] }
  /** The task's ID, its context ID, and how many times it has been started (more than once after a crash). */
  task: { id: string; contextId: string; starts: number }
  /**
   * The client that sent the message, or the agent that sent it for a client: its client ID, its DID if the ID is one, and
   * whether the request was signed with the DID's key.
   */
  caller: { id: string; did?: string; signed: boolean }
  /** The client for which the calling agent acts (spec/delegation.md#callers). Undefined if the client itself is the caller. */
  onBehalfOf: { id: string; did?: string } | undefined
  /** The skill that the message names in `metadata.skill_id`, else the agent's only skill, else undefined. */
  skillId: string | undefined
  /** The MIME types that the caller accepts (spec/methods.md#output-modes). An empty list accepts any. */
  acceptedOutputModes: string[]
  /** Calls other agents in the name of the client of this task (spec/delegation.md#calls). */
  agents: Agents
  /** Aborted when the task is canceled, its deadline passes or the process stops. */
  signal: AbortSignal
  /** A logger that adds the task ID and the context ID. */
  log: HandlerLog
  /** Pauses the task in `input-required` until the caller's next message. Use `return ask(…)` or `yield ask(…)`. */
  ask: (prompt: string, data?: JsonObject) => Pause
  /** Pauses the task in `auth-required` until the caller's next message. */
  requireAuth: (prompt: string, data?: JsonObject) => Pause
  /**
   * Pauses the task in `payment-required` (spec/payments.md#unpaid-calls). `amount` is a decimal string in whole units, for
   * example `"0.01"`. The task fails if the agent has no `executionCost` or the amount is malformed.
   */
  requirePayment: (price: { amount: string; reason: string }) => Pause
  /**
   * Pauses the task in `negotiation-bid-submitted` (spec/tasks.md#bids); the caller answers with data `{accept: true}` or
   * `{accept: false}`. `amount` is a decimal string in whole units; `latencyMs` is in milliseconds.
   */
  bid: (offer: { amount: string; latencyMs?: number; note?: string }) => Pause
  /**
   * Completes the task with a message instead of the main artifact (spec/messages-and-artifacts.md#replies). An A2A client
   * that waits for the answer receives this message in place of the task, unless `asTask` is true or there are named
   * artifacts. Use `return reply(…)` or `yield reply(…)`.
   */
  reply: (content: string | readonly Content[], options?: { asTask?: boolean }) => Reply
  /** Ends the task in `rejected` with the given reason. */
  decline: (reason: string) => Pause
  /**
   * Adds a language model's token usage to the metric `agent_llm_tokens_total` (spec/operations.md#metrics) and to the message that
   * ends the run (spec/messages-and-artifacts.md#usage).
   */
  usage: (spent: { model: string; inputTokens: number; outputTokens: number }) => void
}

/** A message whose parts state whether their signatures are verified. */
export type InputMessage = Omit<Message, 'parts'> & { parts: InputPart[] }

/**
 * A part of a message (spec/messages-and-artifacts.md#signatures). `verified` states whether its signature was made
 * with the caller's key. It is absent if the part has no signature or the caller's key cannot be read.
 */
export type InputPart = Part & { verified?: boolean }

/** A file part. `bytes` and `text` are decoded when they are read. */
export interface InputFile {
  /** The file name. */
  name: string | undefined
  /** The MIME type that the part states, else the one sent by the host of its `uri`. */
  mimeType: string | undefined
  /** Whether the part's signature is verified, as in `InputPart`. */
  verified?: boolean
  /** The content. */
  bytes: Buffer
  /** The content as UTF-8 text. */
  text: string
}

/** Another task of the same owner, which the message refers to or which belongs to the same context. */
export interface Reference {
  /** The task ID. */
  id: string
  /** Its state (spec/tasks.md#states). */
  state: Task['status']['state']
  /** The text parts of its artifacts, or of its message if it has no artifacts, joined by line breaks. */
  text: string
  /** Its artifacts. */
  artifacts: Artifact[]
  /** Its messages, oldest first. Empty for another agent's task. */
  history: Message[]
  /** The file parts of its artifacts. */
  files: InputFile[]
}

/** A handler's logger. Each call takes a text, or fields and a text. */
export interface HandlerLog {
  debug(fields: object | string, text?: string): void
  info(fields: object | string, text?: string): void
  warn(fields: object | string, text?: string): void
  error(fields: object | string, text?: string): void
}

export type { FileContent }
