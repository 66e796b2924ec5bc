import type { ParleyError } from '@parley/wire/errors';
/** An agent could not be reached, or it did not answer. `message` is a sentence without addresses. */
export declare class AgentUnreachable extends Error {
    readonly name = "AgentUnreachable";
    /** Whether the agent may have received the request. */
    readonly received: boolean;
    /** How long the agent asks its clients to wait, in milliseconds. */
    readonly retryAfterMs: number | undefined;
    constructor(message: string, options: {
        received: boolean;
        retryAfterMs?: number | undefined;
        cause?: unknown;
    });
}
/** The agent answered with an error. */
export declare class AgentRefused extends Error {
    readonly name = "AgentRefused";
    readonly error: ParleyError['error'];
    constructor(error: ParleyError);
}
/** The agent's answer does not follow the protocol or exceeds a limit. A repetition does not help. */
export declare class InvalidAgentAnswer extends Error {
    readonly name = "InvalidAgentAnswer";
    /** The HTTP status of an answer without a JSON-RPC result. */
    readonly status: number | undefined;
    constructor(message: string, status?: number);
}
