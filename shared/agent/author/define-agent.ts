import type { PriceDefinition } from '@parley/wire/model/price'
import type { JsonObject } from '@parley/wire/model/task'
import type { z } from 'zod'
import type { HandlerContext } from './context.ts'
import type { Output } from './output.ts'

/**
 * The definition of an agent: a name, skills and a handler. The library provides the rest of the agent server.
 *
 * ```ts
 * export default defineAgent({
 *   name: 'echo',
 *   description: 'Repeats a text',
 *   skills: [{ id: 'echo', name: 'Echo', description: 'Repeats a text', tags: ['text'] }],
 *   handle: ({ text }) => text,
 * })
 * ```
 */
export interface AgentDefinition {
  /**
   * The name on the card (spec/discovery.md#agent-card), 1 to 128 characters. Its slug at the gateway is the name in lower case
   * with `-` for every other character (spec/gateway-registry.md#slugs).
   */
  name: string
  /** The description on the card, 1 to 5,000 characters. */
  description: string
  /** The agent's version on the card. Default `1.0.0`. */
  version?: string
  /** The agent's author, which is part of its DID (spec/did.md#did). Default `parley`. */
  author?: string
  /** At least one skill, here or in a file `skills/<id>.md` with front matter next to `agent.ts`. */
  skills?: SkillDefinition[]
  /** The capabilities on the card. Each defaults to true. */
  capabilities?: {
    /** Whether `message/stream` and `tasks/resubscribe` are available (spec/streaming.md#frames). */
    streaming?: boolean
    /** Whether webhooks receive events (spec/webhooks.md#capability). */
    pushNotifications?: boolean
    /** @deprecated use `pushNotifications` */
    push_notifications?: boolean
  }
  /**
   * The webhook for tasks that register none (spec/webhooks.md#resolution-order). WEBHOOK_URL and WEBHOOK_TOKEN
   * override it. `token` is sent as a bearer token.
   */
  globalWebhook?: { url: string; token?: string }
  /** @deprecated use `capabilities.pushNotifications` */
  push_notifications?: boolean
  /** @deprecated use `globalWebhook.url` */
  global_webhook_url?: string
  /** @deprecated use `globalWebhook.token` */
  global_webhook_token?: string
  /**
   * Whether callers with a DID must sign their requests (spec/authentication.md#did-signatures). `optional`: a signature is
   * checked if the request carries one. `required`: unsigned requests from a DID are refused, and all agents behind a
   * gateway together accept the signature of a write only once (spec/authentication.md#replay). Default `optional`.
   */
  signatures?: 'optional' | 'required'
  /** The number of this agent's tasks that run at the same time, 1 to 10,000. Default 64. */
  concurrency?: number
  /**
   * A task's longest working time in milliseconds, without pauses (spec/tasks.md#pauses-and-deadlines). 0 sets no deadline.
   * At most 2,147,483,647 (24 days). Default 600,000 (10 minutes).
   */
  deadlineMs?: number
  /** What happens to a task if its process dies: `run` starts it again (3 starts at most), `fail` fails it. Default `run`. */
  onRestart?: 'run' | 'fail'
  /** Fields and skills added to the card for callers with `agent:read` (spec/methods.md#agentgetauthenticatedextendedcard). */
  extendedCard?: { description?: string; skills?: SkillDefinition[]; [key: string]: unknown }
  /**
   * The price of a task, paid in advance by x402 (spec/payments.md#price). Several entries are alternatives. A skill's price
   * overrides it. An amount of `"0"` requires no payment in advance but allows `requirePayment` in the handler.
   */
  executionCost?: PriceDefinition | PriceDefinition[]
  /** Runs once for each message of a task. */
  handle: Handler
}

/** A skill of an agent (spec/discovery.md#skills). */
export interface SkillDefinition {
  /** 1 to 128 letters, digits, `_`, `.` or `-`. Callers select the skill with this ID in `metadata.skill_id`. */
  id: string
  /** The display name, 1 to 200 characters. */
  name: string
  /** The description, 1 to 5,000 characters. Negotiation compares it with the task (spec/negotiation.md#score). */
  description: string
  /** The skill's version. Default `1.0.0`. */
  version?: string
  /** Keywords for search and negotiation. */
  tags?: string[]
  /** MIME types that the skill reads. Default `text/plain`. */
  inputModes?: string[]
  /** MIME types that the skill produces. Default `text/plain`. */
  outputModes?: string[]
  /** Example messages. */
  examples?: string[]
  /**
   * The schema of the data that a message must carry. It parses the merged data parts, and the context's `input` is the
   * result. If they do not match, the task is rejected with the reason.
   */
  input?: z.ZodType
  /** The JSON Schema of the data, for a skill without `input` that checks its data itself. Agents publish it. */
  inputSchema?: JsonObject
  /** A free-form description of the skill's capabilities, by name. */
  capabilitiesDetail?: Record<string, unknown>
  /** The expected processing time in milliseconds, which negotiation uses until a time has been measured. */
  performance?: { avgProcessingTimeMs?: number }
  /** The tools that the skill may use. Negotiation matches `required_tools` and `forbidden_tools` against them. */
  allowedTools?: string[]
  /** Hints for negotiation: terms that fit the skill, and terms that rule it out. */
  assessment?: { keywords?: string[]; specializations?: string[]; antiPatterns?: string[] }
  /** The price of a task that uses this skill. Default: the agent's price. */
  executionCost?: PriceDefinition | PriceDefinition[]
  /** Markdown, served at `/agent/skills/{id}/documentation`. */
  documentation?: string
}

/**
 * An agent's code. It returns or yields output, or returns a pause made by its context. An exception fails the task with the
 * first line of its message (spec/tasks.md#failures).
 */
export type Handler = (
  context: HandlerContext,
) => Output | Promise<Output> | AsyncIterable<Output> | Iterable<Output>

/**
 * Gives the default export of an `agent.ts` its type. The process that runs the agent checks the definition and
 * reports each fault in one sentence.
 */
export function defineAgent(definition: AgentDefinition): AgentDefinition {
  return definition
}

export type { PriceDefinition } from '@parley/wire/model/price'
export type { Agents, CallContent, CallEvent, CallMessage, CallOptions, CallResult } from './agents.ts'
export {
  AgentCallError,
  AgentFailedError,
  AgentNotFoundError,
  AgentUnavailableError,
  AuthorityEndedError,
  CallDeadlineError,
  CallLoopError,
  CallRefusedError,
  InputRequiredError,
  NoGatewayError,
  PaymentRequiredError,
} from './call-errors.ts'
export { areCallers, callersMessages } from './callers-messages.ts'
export type { HandlerContext, Reference } from './context.ts'
export { type Artifact, artifact, data, file, type Output, part, progress } from './output.ts'
