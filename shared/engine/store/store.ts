import type { StoredEvent } from '@parley/wire/model/event'
import type { Task, TaskState } from '@parley/wire/model/task'
import type { Timestamp } from '@parley/wire/model/timestamp'
import type { PaymentStore } from './payment-store.ts'
import type { WebhookStore } from './webhook-store.ts'

/** A task with the internal data of the server. A record is one document and changes in one atomic commit. */
export interface TaskRecord extends Task {
  owner: string
  /** Incremented by each commit; the value that compare-and-set compares. */
  version: number
  /** Numbered from 1 without gaps, up to `events.length`. */
  events: StoredEvent[]
  createdAt: Timestamp
  updatedAt: Timestamp
  /** How often a handler was started for the current message. */
  starts: number
  /** Working time used by finished runs, in milliseconds (a deadline counts working time). */
  workedMs: number
  /** The process that runs it, and until when (milliseconds since 1970); absent when none does. */
  lease?: { holder: string; until: number }
  /** When a pause expires (milliseconds since 1970). */
  dueAt?: number
  referenceTaskIds: string[]
  /** Referenced tasks of other agents, as they were when the message was accepted, without history. */
  foreignReferences?: Task[]
  acceptedOutputModes: string[]
  /** The request with the newest message was signed by its caller. */
  signed?: true
  /** Payments for the task and its messages. */
  payments?: string[]
  /** Number of starts that ended without the death of their process. */
  survived?: number
  /** A payment whose settlement is unknown. The task does not run until it is decided. */
  heldBy?: string
  /** The payment that a pause in `payment-required` requests, in whole units. */
  asked?: { amount: string; reason: string }
}

export type Unfinishedness = 'all' | 'left'

/** The data of an unfinished task that a start needs; the record may be large. */
export interface UnfinishedTask {
  id: string
  version: number
  owner: string
  state: 'submitted' | 'working'
  /** A worker had a lease on it: it may have run. */
  leased: boolean
}

export interface ContextRecord {
  id: string
  owner: string
  createdAt: Timestamp
  updatedAt: Timestamp
}

/**
 * A task for a response: a `LazyPart` (`@parley/wire/codecs/lazy-part`) replaces each large part and reads it during
 * serialization. Handlers and the engine use whole records.
 */
export interface TaskOutline {
  task: TaskRecord
  /** Approximate length of its JSON with all parts. */
  bytes: number
}

/** Called with the size before a large record is read. Throws to refuse. */
export type Admit = (bytes: number) => void

export interface Page<T> {
  items: T[]
  /** Opaque; pass it to read the next page. Absent at the end. */
  nextCursor?: string
}

export type ContextPage = Page<
  ContextRecord & {
    /** Oldest first; the newest 1,000 of a context with more tasks. */
    taskIds: string[]
    /** Number of its tasks. */
    taskCount: number
    /** True while a task of it has not ended. */
    busy: boolean
  }
>

export interface TaskQuery {
  owner: string
  contextId?: string
  state?: TaskState
  limit: number
  cursor?: string
}

export interface IdempotencyRecord {
  owner: string
  key: string
  /** SHA-256 of the request body. */
  bodyHash: string
  taskId: string
  /** Milliseconds since 1970. */
  expiresAt: number
}

export interface Feedback {
  taskId: string
  owner: string
  feedback: string
  rating?: number
  metadata?: Record<string, unknown>
  at: Timestamp
}

/**
 * The persistent state of an agent. Every adapter guarantees: a resolved promise means that the change is durable, and a
 * record changes atomically. There are no transactions over two records. The owner is an argument of every `find`; records
 * of other owners are not found. Absence is `undefined`, never an error. Parts larger than `largePartBytes` are stored
 * separately before the commit of their task, and returned with it.
 */
export interface Store extends AsyncDisposable {
  /** True when no other process can write: the lease of another holder has expired. */
  readonly exclusive: boolean
  /** Rejects when the storage does not answer or cannot be written. */
  ping(): Promise<void>

  /**
   * False when the id exists, for any owner. Sets `updatedAt` of the context to the task's `createdAt`, or creates the
   * context.
   * @throws ParleyError ContextNotFound when the context belongs to another owner
   */
  createTask(record: TaskRecord): Promise<boolean>
  /** @param admit called with the size of the whole record before a large one is read */
  findTask(id: string, owner: string, admit?: Admit): Promise<TaskRecord | undefined>
  /** @param admit called with the size without the large parts */
  outlineTask(id: string, owner: string, admit: Admit): Promise<TaskOutline | undefined>
  /** For the engine only: a task of any owner. */
  loadTask(id: string): Promise<TaskRecord | undefined>
  /**
   * Replaces the record if its version is still `record.version - 1`, and returns whether it was. False also when a new task
   * has the id. Never shortens the lease of the same holder.
   */
  commitTask(record: TaskRecord): Promise<boolean>
  /**
   * Newest first. A page of large tasks may be shorter than `limit` (at most 64 MiB and one task).
   * @throws ParleyError InvalidParams for an invalid cursor
   */
  listTasks(query: TaskQuery): Promise<Page<TaskRecord>>
  /**
   * The same page as outlines, of at most 16 MiB with large parts and one task.
   * @param admit called with the size of the page so far, without the large parts
   */
  outlineTasks(query: TaskQuery, admit: Admit): Promise<Page<TaskOutline>>
  /**
   * Tasks to resume at a start, oldest first: submitted or working, without a lease or with one that ended before `now`. In
   * an `exclusive` store the lease of any other holder has ended. `left`: only tasks that a process had started.
   */
  listUnfinished(now: number, ourHolder: string, which?: Unfinishedness): Promise<UnfinishedTask[]>
  /** Number of events of each task. Missing tasks are left out. */
  countEvents(taskIds: string[]): Promise<Map<string, number>>
  /** Ids of paused tasks whose `dueAt` has passed. */
  listDue(now: number, limit: number): Promise<string[]>
  /**
   * Extends the leases of the holder without a new version. Returns the tasks on which it has no lease: they ended or were
   * taken over.
   */
  renewLeases(holder: string, taskIds: string[], until: number): Promise<string[]>
  /**
   * Records that a process lost this start of a task to another process and kept running. Does not change the version; does
   * nothing for a task that is not running or in an `exclusive` store.
   */
  noteSurvived(taskId: string, start: number): Promise<void>
  /**
   * Number of unfinished tasks by state, and of all tasks that ever ended in a state, including removed ones. States without
   * tasks are left out.
   */
  countByState(): Promise<Partial<Record<TaskState, number>>>

  /** A context is created by its first task and removed with its last. */
  findContext(id: string, owner: string): Promise<ContextRecord | undefined>
  /** True when `createTask` would throw for it. */
  isAnothersContext(id: string, owner: string): Promise<boolean>
  /**
   * Newest change first, with the ids of their tasks. A page may be shorter than `limit`.
   * @throws ParleyError InvalidParams for an invalid cursor
   */
  listContexts(query: { owner: string; limit: number; cursor?: string }): Promise<ContextPage>
  /** The newest `limit` ended tasks of the context, oldest first; fewer if they are large (64 MiB and one task). */
  contextHistory(contextId: string, owner: string, limit: number): Promise<TaskRecord[]>
  /**
   * Removes the context with its tasks and everything that belongs to them. `busy`: a task has not ended, and nothing is
   * removed.
   */
  clearContext(id: string, owner: string): Promise<'cleared' | 'busy' | 'absent'>

  /** Stores the key. Returns the unexpired record of the same key, if there is one. */
  claimIdempotencyKey(record: IdempotencyRecord): Promise<IdempotencyRecord | undefined>
  /** Replaces earlier feedback of the same owner on the task. Ignored when the task does not exist. */
  saveFeedback(feedback: Feedback): Promise<void>
  findFeedback(taskId: string, owner: string): Promise<Feedback | undefined>
  /**
   * Removes up to `limit` ended tasks that were last changed before `before`, oldest first, with everything that belongs to
   * them, and expired keys. Returns the number of tasks.
   */
  removeEnded(before: Timestamp, limit: number): Promise<number>

  /**
   * Marks a signature of a DID as used: true the first time, then false until `until` (milliseconds since 1970). Of
   * concurrent calls in any process, one returns true.
   */
  takeSignature(did: string, signature: Uint8Array, until: number): Promise<boolean>

  /** Persistent push configs. */
  readonly webhooks: WebhookStore

  /** The ledger of payments. */
  readonly payments: PaymentStore
}
