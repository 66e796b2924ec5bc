import type { Artifact, JsonObject, Part, TaskState } from '@parley/wire/model/task'
import type { InputFile } from './context.ts'
import type { OutputFile } from './output.ts'

/**
 * Calls other agents of the gateway in the name of the client of the task (spec/delegation.md#calls). A handler that runs
 * again after a crash receives the tasks of its earlier calls instead of new ones, if it sends the same messages.
 *
 * Every method throws a subclass of `AgentCallError`: `NoGatewayError`, `AgentNotFoundError`, `CallRefusedError`,
 * `PaymentRequiredError`, `InputRequiredError`, `AgentFailedError`, `CallDeadlineError`, `AuthorityEndedError`,
 * `CallLoopError` or `AgentUnavailableError`.
 */
export interface Agents {
  /**
   * Sends a message to an agent and waits for the result.
   * @param agent the agent's slug at the gateway, see `npx parley agents`
   */
  call(agent: string, message: CallMessage, options?: CallOptions): Promise<CallResult>
  /** Sends a message to the agent that the gateway chooses for it (spec/negotiation.md#gateway), and waits for the result. */
  best(message: CallMessage, options?: CallOptions): Promise<CallResult>
  /**
   * Like `call`, but yields the changes of state, the pieces of text and the artifacts as they arrive. An agent that does not
   * support streaming yields its artifacts at the end.
   */
  stream(agent: string, message: CallMessage, options?: CallOptions): AsyncGenerator<CallEvent, void, void>
  /** The tasks that this task has created at other agents, in the order of the calls. */
  readonly children: readonly { agent: string; taskId: string }[]
}

/** A text, or a message with data and files. */
export type CallMessage = string | CallContent

/** A message to an agent. At least one of `text`, `data`, `files` and `parts` is required. */
export interface CallContent {
  /** The text of the message. */
  text?: string
  /** A JSON object, sent as a data part. */
  data?: JsonObject
  /** Files made by `file`, or received in a message or a result. */
  files?: readonly (InputFile | OutputFile)[]
  /** Further parts. */
  parts?: readonly Part[]
  /** The skill of the agent, if it has several. */
  skillId?: string
}

/** Options of one call. */
export interface CallOptions {
  /** Continues a paused task of the agent. Default: a new task. */
  taskId?: string
  /** The conversation of the agent's task. Default: a new one. */
  contextId?: string
  /** The time that the agent's task may take, in milliseconds. At most, and by default, the remaining time of this task. */
  deadlineMs?: number
  /** Whether the agent's task continues when this task ends. By default it is canceled. */
  detach?: boolean
  /** MIME types that the result may have. Default: any. */
  acceptedOutputModes?: readonly string[]
  /** Stops waiting, and cancels the agent's task unless it is detached. The call throws the signal's reason. */
  signal?: AbortSignal
}

/** The result of a completed task of another agent. */
export interface CallResult {
  /** The agent's slug. */
  agent: string
  /** Undefined for an agent that answered without a task. */
  taskId: string | undefined
  /** The context of the agent's task. Undefined for an agent that answered without a task. */
  contextId: string | undefined
  /** The state of the agent's task. All other final states throw an error. */
  state: 'completed'
  /** The parts of the artifacts; of an agent that answered with a message, those of the message. */
  parts: Part[]
  /** The text parts, joined by line breaks. */
  text: string
  /** The data parts, merged; later parts win. */
  data: JsonObject
  /** The file parts. A file that has only a `uri` in `parts` is empty here. */
  files: InputFile[]
  /** The artifacts of the agent's task as received. */
  artifacts: Artifact[]
}

/** An event of another agent's task. */
export type CallEvent =
  /** The state of the task changed. */
  | { kind: 'state'; taskId: string; state: TaskState }
  /** A message about the work so far. */
  | { kind: 'progress'; taskId: string; text: string; parts: Part[] }
  /** A piece of an unfinished artifact, which follows as a whole. */
  | { kind: 'delta'; taskId: string; text: string; parts: Part[] }
  /** A finished artifact. */
  | { kind: 'artifact'; taskId: string; name: string; text: string; parts: Part[]; files: InputFile[] }
  /** The message of an agent that completed its task without artifacts. */
  | { kind: 'reply'; taskId: string; text: string; parts: Part[]; files: InputFile[] }
