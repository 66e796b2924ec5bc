import type { Message } from '@parley/wire/model/task';
type Said = Pick<Message, 'role'>;
/**
 * Which messages of a task are the caller's. The caller may speak in any role, also in ours; but a task begins with the
 * caller, and takes the next message only after we have said something.
 */
export declare function areCallers(history: readonly Said[]): boolean[];
/** The caller's messages of a task, oldest first. */
export declare function callersMessages<T extends Said>(history: readonly T[]): T[];
export {};
