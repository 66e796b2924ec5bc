import type { Artifact, FileContent, JsonObject, Message, Part, Task } from '@parley/wire/model/task';
import type { Pause } from './output.ts';
/** What a handler is given. Everything in it is read-only for the handler. */
export interface HandlerContext<Input = unknown> {
    /** The text parts of the newest message, joined by line breaks. */
    text: string;
    /** The data parts of the newest message, merged; later parts win. */
    data: JsonObject;
    /** The file parts of the newest message. */
    files: InputFile[];
    /** The data of all the caller's messages to this task, merged, parsed by the skill's `input` schema where it has one. */
    input: Input;
    /** The newest message as it came; its parts say whether they are `verified`. */
    message: InputMessage;
    /**
     * Everything said in this task so far, the newest message last: after `ask` it holds the question and the answer. File
     * parts of the caller that name a `uri` carry its `bytes` too, earlier ones where they can still be had.
     */
    history: Message[];
    /** The tasks named by `referenceTaskIds`, in that order. */
    references: Reference[];
    /** The conversation: earlier tasks of the same context, oldest first, the newest 50. */
    context: {
        id: string;
        history: Reference[];
    };
    /** Id and context of the task itself, and how often it was started (more than 1 after a crash). */
    task: {
        id: string;
        contextId: string;
        starts: number;
    };
    /** Who asks: the token's client, its DID where it is one, and whether it signed the request with the DID's key. */
    caller: {
        id: string;
        did?: string;
        signed: boolean;
    };
    /** The skill that the message names in `metadata.skill_id`, else the only one, else undefined. */
    skillId: string | undefined;
    /** MIME types the caller accepts; empty = anything. */
    acceptedOutputModes: string[];
    /** Aborted when the task is canceled, its deadline passes or the process stops. */
    signal: AbortSignal;
    /** A logger that carries the ids of task and context. */
    log: HandlerLog;
    /** Pause: the task waits in `input-required` for the caller's next message. `return ask(…)` or `yield ask(…)`. */
    ask: (prompt: string, data?: JsonObject) => Pause;
    /** Pause in `auth-required`. */
    requireAuth: (prompt: string, data?: JsonObject) => Pause;
    /** Pause in `payment-required`; amount in whole units, for example `"0.01"`. */
    requirePayment: (price: {
        amount: string;
        reason: string;
    }) => Pause;
    /** Pause in `negotiation-bid-submitted`; the caller answers with data `{accept: true}` or `{accept: false}`. */
    bid: (offer: {
        amount: string;
        latencyMs?: number;
        note?: string;
    }) => Pause;
    /** The task ends in `rejected` with the reason. */
    decline: (reason: string) => Pause;
    /** Adds to `agent_llm_tokens_total`. */
    usage: (spent: {
        model: string;
        inputTokens: number;
        outputTokens: number;
    }) => void;
}
export type InputMessage = Omit<Message, 'parts'> & {
    parts: InputPart[];
};
/** `verified`: the part carries a signature, and it is (or is not) one by the caller's key. Absent: no signature, or no key. */
export type InputPart = Part & {
    verified?: boolean;
};
export interface InputFile {
    name: string | undefined;
    mimeType: string | undefined;
    /** As of its part. */
    verified?: boolean;
    bytes: Buffer;
    /** The bytes as UTF-8 text. */
    text: string;
}
/** An earlier task of the same owner, read-only. */
export interface Reference {
    id: string;
    state: Task['status']['state'];
    /** The text parts of its artifacts, joined by line breaks. */
    text: string;
    artifacts: Artifact[];
    history: Message[];
    files: InputFile[];
}
export interface HandlerLog {
    debug(fields: object | string, text?: string): void;
    info(fields: object | string, text?: string): void;
    warn(fields: object | string, text?: string): void;
    error(fields: object | string, text?: string): void;
}
export type { FileContent };
