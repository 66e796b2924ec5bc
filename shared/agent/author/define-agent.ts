import type { PriceDefinition } from '@parley/wire/model/price'
import type { z } from 'zod'
import type { HandlerContext } from './context.ts'
import type { Output } from './output.ts'

/**
 * The definition of an agent: a name, skills and a handler. The library provides everything else of the agent server.
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
   * Name on the card (spec/discovery.md#agent-card), 1 to 128 characters. Its slug at the gateway is the name in lower case
   * with `-` for every other character (spec/gateway-registry.md#slugs).
   */
  name: string
  /** Description on the card, 1 to 5,000 characters. */
  description: string
  /** Version of the agent on the card. Default `1.0.0`. */
  version?: string
  /** Author of the agent, which is part of its DID (spec/did.md#did). Default `parley`. */
  author?: string
  /** At least one skill, here or in a file `skills/<id>.md` with front matter in the folder of `agent.ts`. */
  skills?: SkillDefinition[]
  /** Capabilities on the card. Each defaults to true. */
  capabilities?: {
    /** Whether `message/stream` and `tasks/resubscribe` are available (spec/streaming.md#frames). */
    streaming?: boolean
    /** Whether webhooks receive events (spec/webhooks.md#capability). */
    pushNotifications?: boolean
    /** @deprecated use `pushNotifications` */
    push_notifications?: boolean
  }
  /**
   * Webhook for the events of tasks without a webhook (spec/webhooks.md#resolution-order). WEBHOOK_URL and WEBHOOK_TOKEN
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
   * Whether callers that are DIDs must sign their requests (spec/authentication.md#did-signatures). `optional`: a signature is
   * checked if the request carries one. `required`: a request of a DID without a signature is refused, and all agents of a
   * gateway together accept each signature of a write once (spec/authentication.md#replay). Default `optional`.
   */
  signatures?: 'optional' | 'required'
  /** Tasks of this agent that run at the same time, 1 to 10,000. Default 64. */
  concurrency?: number
  /**
   * Longest working time of a task in milliseconds, pauses not counted (spec/tasks.md#pauses-and-deadlines). 0: no deadline.
   * At most 2,147,483,647 (24 days). Default 600,000 (10 minutes).
   */
  deadlineMs?: number
  /** A task whose process died while it ran: `run` starts it again (at most 3 starts), `fail` fails it. Default `run`. */
  onRestart?: 'run' | 'fail'
  /** Fields and skills added to the card for callers with `agent:read` (spec/methods.md#agentgetauthenticatedextendedcard). */
  extendedCard?: { description?: string; skills?: SkillDefinition[]; [key: string]: unknown }
  /**
   * Price of a task, paid in advance by x402 (spec/payments.md#price). Several entries are alternatives. The price of a skill
   * overrides it. An amount of `"0"` requires no payment in advance, but allows `requirePayment` in the handler.
   */
  executionCost?: PriceDefinition | PriceDefinition[]
  /** Runs once for each message of a task. */
  handle: Handler
}

/** A skill of an agent (spec/discovery.md#skills). */
export interface SkillDefinition {
  /** 1 to 128 letters, digits, `_`, `.` or `-`; callers select the skill with it in `metadata.skill_id`. */
  id: string
  /** Display name, 1 to 200 characters. */
  name: string
  /** Description, 1 to 5,000 characters. Negotiation compares it with the task (spec/negotiation.md#score). */
  description: string
  /** Version of the skill. Default `1.0.0`. */
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
   * Schema of the data that a message must carry. The merged data parts are parsed with it; `input` of the context is the
   * result. The task is rejected with the reason if they do not match.
   */
  input?: z.ZodType
  /** Free-form description of the abilities of the skill, by name. */
  capabilitiesDetail?: Record<string, unknown>
  /** Expected processing time in milliseconds, which negotiation uses until it has measured one. */
  performance?: { avgProcessingTimeMs?: number }
  /** Tools the skill may use. Negotiation matches `required_tools` and `forbidden_tools` against them. */
  allowedTools?: string[]
  /** Hints for negotiation: terms that fit the skill, and terms that rule it out. */
  assessment?: { keywords?: string[]; specializations?: string[]; antiPatterns?: string[] }
  /** Price of a task of this skill. Default: the price of the agent. */
  executionCost?: PriceDefinition | PriceDefinition[]
  /** Markdown, served at `/agent/skills/{id}/documentation`. */
  documentation?: string
}

/**
 * The code of an agent: returns or yields output, or returns a pause of its context. An exception fails the task with the
 * first line of its message (spec/tasks.md#failures).
 */
export type Handler = (
  context: HandlerContext,
) => Output | Promise<Output> | AsyncIterable<Output> | Iterable<Output>

/**
 * Types the default export of an `agent.ts`. It does not check the definition: the process that runs the agent does, and
 * reports every fault in a sentence.
 */
export function defineAgent(definition: AgentDefinition): AgentDefinition {
  return definition
}

export type { PriceDefinition } from '@parley/wire/model/price'
export { areCallers, callersMessages } from './callers-messages.ts'
export type { HandlerContext, Reference } from './context.ts'
export { type Artifact, artifact, data, file, type Output } from './output.ts'
