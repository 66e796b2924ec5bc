import type { StoredEvent } from '@parley/wire/model/event';
import type { Task, TaskState } from '@parley/wire/model/task';
import type { Timestamp } from '@parley/wire/model/timestamp';
import type { PaymentStore } from './payment-store.ts';
import type { WebhookStore } from './webhook-store.ts';
/** A task with what the server alone knows of it. One record is one document: it changes in one atomic commit. */
export interface TaskRecord extends Task {
    owner: string;
    /** Raised by one with each commit; the compare of compare-and-set. */
    version: number;
    /** Numbered from 1 without a gap; the last one's number is `events.length`. */
    events: StoredEvent[];
    createdAt: Timestamp;
    updatedAt: Timestamp;
    /** How often a handler was started for the present message. */
    starts: number;
    /** Working time used by finished runs, in milliseconds (a deadline counts working time). */
    workedMs: number;
    /** Who runs it and until when (milliseconds since 1970); absent when nobody does. */
    lease?: {
        holder: string;
        until: number;
    };
    /** When a pause ends by itself (milliseconds since 1970). */
    dueAt?: number;
    referenceTaskIds: string[];
    /** Those of them that are another agent's, as they were when the message was accepted; without history. */
    foreignReferences?: Task[];
    acceptedOutputModes: string[];
    /** The request that brought the newest message was signed by its caller. */
    signed?: true;
    /** The payments that paid for it, and for its messages. */
    payments?: string[];
    /** How many of the starts ended otherwise than with the death of their process. */
    survived?: number;
    /** The payment whose settlement is not known yet: until it is, nobody runs the task. */
    heldBy?: string;
    /** What a pause in `payment-required` asks for, in whole units. */
    asked?: {
        amount: string;
        reason: string;
    };
}
export type Unfinishedness = 'all' | 'left';
/** What a start must know of a task that an earlier process left behind; its record may be large. */
export interface UnfinishedTask {
    id: string;
    version: number;
    owner: string;
    state: 'submitted' | 'working';
    /** A worker had taken it: it may have run. */
    leased: boolean;
}
export interface ContextRecord {
    id: string;
    owner: string;
    createdAt: Timestamp;
    updatedAt: Timestamp;
}
/**
 * A task as an answer needs it: a `LazyPart` (`shared/protocol/lazy-part.ts`) stands for each large part and reads it when
 * the answer gets there. For serialization alone; handlers and the engine work with whole records.
 */
export interface TaskOutline {
    task: TaskRecord;
    /** About the length of its JSON with all parts. */
    bytes: number;
}
/** Called with the size of what is about to be read, where that is large. Throws to refuse. */
export type Admit = (bytes: number) => void;
export interface Page<T> {
    items: T[];
    /** Opaque; give it back to read on. Absent at the end. */
    nextCursor?: string;
}
export type ContextPage = Page<ContextRecord & {
    /** Oldest first; of a context with more than 1,000 tasks the newest 1,000. */
    taskIds: string[];
    /** How many tasks it has. */
    taskCount: number;
    /** True while a task of it has not ended. */
    busy: boolean;
}>;
export interface TaskQuery {
    owner: string;
    contextId?: string;
    state?: TaskState;
    limit: number;
    cursor?: string;
}
export interface IdempotencyRecord {
    owner: string;
    key: string;
    /** SHA-256 of the request body. */
    bodyHash: string;
    taskId: string;
    /** Milliseconds since 1970. */
    expiresAt: number;
}
export interface Feedback {
    taskId: string;
    owner: string;
    feedback: string;
    rating?: number;
    metadata?: Record<string, unknown>;
    at: Timestamp;
}
/**
 * Everything of an agent that outlives its process. Promises of every adapter: a resolved promise means that the
 * change is durable; a record changes atomically; nothing more (no transaction over two records). The owner is an
 * argument of every `find`: another's thing is not there. Absence is `undefined`, never an error.
 * Parts larger than `largePartBytes` are kept beside the task, before its commit, and come back with it.
 */
export interface Store extends AsyncDisposable {
    /** True when no other process can write here: a lease that is not ours is a dead one. */
    readonly exclusive: boolean;
    /** Asks the storage itself; rejects when it does not answer or cannot be written. */
    ping(): Promise<void>;
    /**
     * False when the id exists already (whoever owns it). The task's context moves to its `createdAt`; one that is not there
     * (or was cleared just now) is made.
     * @throws ParleyError ContextNotFound when the context is another owner's
     */
    createTask(record: TaskRecord): Promise<boolean>;
    /** @param admit called with the size of the whole record before a large one is read */
    findTask(id: string, owner: string, admit?: Admit): Promise<TaskRecord | undefined>;
    /** @param admit called with the size without the large parts */
    outlineTask(id: string, owner: string, admit: Admit): Promise<TaskOutline | undefined>;
    /** For the engine alone: whoever owns it. */
    loadTask(id: string): Promise<TaskRecord | undefined>;
    /**
     * Replaces the record if its version is still `record.version - 1`; false otherwise, also where a task of the same id was
     * created since. Never shortens the lease of the same holder.
     */
    commitTask(record: TaskRecord): Promise<boolean>;
    /**
     * Newest first. A page of large tasks may be shorter than `limit` (at most 64 MiB and one task); read on by its cursor.
     * @throws ParleyError InvalidParams for a cursor that is not one of ours.
     */
    listTasks(query: TaskQuery): Promise<Page<TaskRecord>>;
    /**
     * The same page as outlines, of at most 16 MiB (large parts included) and one task.
     * @param admit called with the size of the page so far, without the large parts
     */
    outlineTasks(query: TaskQuery, admit: Admit): Promise<Page<TaskOutline>>;
    /**
     * Tasks to take up at a start, oldest first: submitted or working, with no lease or one that ended before `now`. In an
     * `exclusive` store the lease of any other holder has ended. `left`: only those that a process had, not those that wait.
     */
    listUnfinished(now: number, ourHolder: string, which?: Unfinishedness): Promise<UnfinishedTask[]>;
    /** How many events each of these tasks has; those that are not there, or do not say, are left out. */
    countEvents(taskIds: string[]): Promise<Map<string, number>>;
    /** Ids of paused tasks whose `dueAt` has passed. */
    listDue(now: number, limit: number): Promise<string[]>;
    /**
     * Prolongs the leases of the holder on these tasks. No version is raised. Returns the tasks on which it has none (any
     * more): ended meanwhile, or taken over.
     */
    renewLeases(holder: string, taskIds: string[], until: number): Promise<string[]>;
    /**
     * The process that began this start of a task has lost it to another one, and lives. No version is raised, and nothing is
     * noted of a task that does not run. A store that is `exclusive` knows no such thing.
     */
    noteSurvived(taskId: string, start: number): Promise<void>;
    /**
     * Tasks that have not ended: how many there are now. Ended ones: how many ever ended in that state, also those removed
     * since. States without any are left out.
     */
    countByState(): Promise<Partial<Record<TaskState, number>>>;
    /** A context lasts from its first task, which makes it, to its last. */
    findContext(id: string, owner: string): Promise<ContextRecord | undefined>;
    /** True when `createTask` would refuse it. */
    isAnothersContext(id: string, owner: string): Promise<boolean>;
    /**
     * Newest change first, with the ids of their tasks. A page may be shorter than `limit`; read on by its cursor.
     * @throws ParleyError InvalidParams for a cursor that is not one of ours.
     */
    listContexts(query: {
        owner: string;
        limit: number;
        cursor?: string;
    }): Promise<ContextPage>;
    /** The newest `limit` ended tasks of the context, oldest first; fewer where they are large (64 MiB and one task). */
    contextHistory(contextId: string, owner: string, limit: number): Promise<TaskRecord[]>;
    /**
     * Removes the context with its tasks and all that belongs to them. `busy` when a task of it has not ended: nothing
     * is removed then.
     */
    clearContext(id: string, owner: string): Promise<'cleared' | 'busy' | 'absent'>;
    /** Remembers the key; returns the record that was there before (not expired), else undefined. */
    claimIdempotencyKey(record: IdempotencyRecord): Promise<IdempotencyRecord | undefined>;
    /** Replaces earlier feedback of the same owner on the task; nothing is kept when the task is gone. */
    saveFeedback(feedback: Feedback): Promise<void>;
    findFeedback(taskId: string, owner: string): Promise<Feedback | undefined>;
    /**
     * Removes ended tasks last changed before `before`, oldest first, at most `limit`, with all that belongs to them (a
     * context with its last task), and expired keys. Returns how many tasks.
     */
    removeEnded(before: Timestamp, limit: number): Promise<number>;
    /**
     * Takes a signature of a DID: true the first time, false until `until` (milliseconds since 1970) has passed. Of two
     * that come at the same time, in whatever process, one is the first.
     */
    takeSignature(did: string, signature: Uint8Array, until: number): Promise<boolean>;
    /** The push configs that outlive the process. */
    readonly webhooks: WebhookStore;
    /** The ledger of payments. */
    readonly payments: PaymentStore;
}
