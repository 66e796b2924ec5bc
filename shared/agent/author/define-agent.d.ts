import type { PriceDefinition } from '@parley/wire/model/price';
import type { z } from 'zod';
import type { HandlerContext } from './context.ts';
import type { Output } from './output.ts';
/**
 * What an author writes: a name, skills and a handler. Everything else of an agent server comes from the library.
 *
 * ```ts
 * export default defineAgent({
 *   name: 'echo',
 *   description: 'Says what you say',
 *   skills: [{ id: 'echo', name: 'Echo', description: 'Repeats a text', tags: ['text'] }],
 *   handle: ({ text }) => text,
 * })
 * ```
 */
export interface AgentDefinition {
    /** Shown on the card; in lower case, with `-` for anything else, it is the agent's slug at the gateway. */
    name: string;
    description: string;
    /** Version of the agent, shown on the card. Default `1.0.0`. */
    version?: string;
    /** Who makes the agent; part of its DID. Default `parley`. */
    author?: string;
    /** At least one. A skill may also stand in a file `skills/<id>.md` with front matter beside `agent.ts`. */
    skills?: SkillDefinition[];
    /** Both default to true. */
    capabilities?: {
        streaming?: boolean;
        pushNotifications?: boolean;
        /** @deprecated use `pushNotifications` */
        push_notifications?: boolean;
    };
    /**
     * Where events of tasks go that have no webhook of their own, while `capabilities.pushNotifications` is on. WEBHOOK_URL and
     * WEBHOOK_TOKEN win over it. `token` is sent as the bearer credential.
     */
    globalWebhook?: {
        url: string;
        token?: string;
    };
    /** @deprecated use `capabilities.pushNotifications` */
    push_notifications?: boolean;
    /** @deprecated use `globalWebhook.url` */
    global_webhook_url?: string;
    /** @deprecated use `globalWebhook.token` */
    global_webhook_token?: string;
    /**
     * Whether callers that are DIDs must sign their requests. Default `optional`: a signature is checked where there is one.
     * `required`: such a caller without one is refused, and each signed request that writes is taken once by
     * all agents of a gateway together (`docs/decisions/0005-signatures.md`).
     */
    signatures?: 'optional' | 'required';
    /** Tasks of this agent that run at the same time. Default 64; each waits for the disk, too, before it gives its place to the next. */
    concurrency?: number;
    /** Longest working time of a task in milliseconds (pauses do not count). Default 10 minutes; at most 24 days; 0 = none. */
    deadlineMs?: number;
    /** What happens to a task whose process died while it ran: run it again (at most 3 starts) or fail it. Default `run`. */
    onRestart?: 'run' | 'fail';
    /** More than the public card, for callers with agent:read (`agent/getAuthenticatedExtendedCard`). */
    extendedCard?: {
        description?: string;
        skills?: SkillDefinition[];
        [key: string]: unknown;
    };
    /**
     * What a task costs, paid in advance by x402; several ways to pay may be given. A skill's own price wins. `amount` is in
     * whole units (`"0.01"`); `"0"` costs nothing in advance, but lets the handler ask (`requirePayment`).
     */
    executionCost?: PriceDefinition | PriceDefinition[];
    handle: Handler;
}
/** A skill as its author declares it (spec/discovery.md#skills). */
export interface SkillDefinition {
    id: string;
    name: string;
    description: string;
    version?: string;
    tags?: string[];
    /** MIME types the skill reads and makes. Default `text/plain` both. */
    inputModes?: string[];
    outputModes?: string[];
    /** Sentences a caller would write. */
    examples?: string[];
    /** What a message must carry. The data parts (merged) are parsed with it; a misfit rejects the task with the reason. */
    input?: z.ZodType;
    /** Free description of what the skill can do, by name. */
    capabilitiesDetail?: Record<string, unknown>;
    performance?: {
        avgProcessingTimeMs?: number;
    };
    /** Tools the skill may use; negotiation matches `required_tools` and `forbidden_tools` against it. */
    allowedTools?: string[];
    assessment?: {
        keywords?: string[];
        specializations?: string[];
        antiPatterns?: string[];
    };
    /** What a task of this skill costs; default: what the agent costs. */
    executionCost?: PriceDefinition | PriceDefinition[];
    /** Markdown, served at `/agent/skills/{id}/documentation`. */
    documentation?: string;
}
/** Return or yield output, or call a pause of the context; a thrown error is a failed task. */
export type Handler = (context: HandlerContext) => Output | Promise<Output> | AsyncIterable<Output> | Iterable<Output>;
/** Marks the default export of an `agent.ts`. Checks nothing by itself: the process that runs it does, at its start. */
export declare function defineAgent(definition: AgentDefinition): AgentDefinition;
export type { PriceDefinition } from '@parley/wire/model/price';
export { areCallers, callersMessages } from './callers-messages.ts';
export type { HandlerContext, Reference } from './context.ts';
export { type Artifact, artifact, data, file, type Output } from './output.ts';
