import type { TraceContext } from '@parley/kit/telemetry/trace-context'
import type { StoredEvent } from '@parley/wire/model/event'
import type { Task, TaskLink, TaskState } from '@parley/wire/model/task'
import type { Timestamp } from '@parley/wire/model/timestamp'
import type { AllTasksPage, AllTasksQuery } from './all-tasks.ts'
import type { PaymentStore } from './payment-store.ts'
import type { UsageStore } from './usage-days.ts'
import type { WebhookStore } from './webhook-store.ts'

/** A task with the server's internal data. A record is one document and changes in one atomic commit. */
export interface TaskRecord extends Task {
  owner: string
  /** Incremented by each commit and compared by compare-and-set. */
  version: number
  /** Events, numbered from 1 to `events.length` without gaps. */
  events: StoredEvent[]
  createdAt: Timestamp
  updatedAt: Timestamp
  /** Number of times a handler was started for the current message. */
  starts: number
  /**
   * The starts of a handler while the task was working, which have no event: after the process of the earlier start was lost, or
   * released the task because it stopped.
   */
  restarts?: { at: Timestamp; after: 'lost' | 'released' }[]
  /** When a process that stopped released the task. Absent once the task has started again. */
  releasedAt?: Timestamp
  /** Working time of finished runs in milliseconds, because a deadline limits working time. */
  workedMs: number
  /** The process that runs the task and the end of its lease (milliseconds since 1970); absent if none runs it. */
  lease?: { holder: string; until: number }
  /** When a pause expires, or when an ended task's children are to be canceled (milliseconds since 1970). */
  dueAt?: number
  referenceTaskIds: string[]
  /** Other agents' tasks that the message references, as they were when it was accepted, without their history. */
  foreignReferences?: Task[]
  acceptedOutputModes: string[]
  /** Whether the caller signed the request that contained the newest message. */
  signed?: true
  /** Ids of the payments for the task and its messages. */
  payments?: string[]
  /** Number of starts that lost the task although their process kept running. */
  survived?: number
  /** A payment whose settlement is uncertain. The task does not run until the payment is decided. */
  heldBy?: string
  /** The payment requested by a pause in `payment-required`, in whole units. */
  asked?: { amount: string; reason: string }
  /** Whether the task waits in `payment-required` for the price of its message, before its first start. */
  unpaid?: true
  /** Present if an agent created the task for a client. */
  delegation?: Delegation
  /** When the time that the caller allows ends (milliseconds since 1970). */
  deadlineAt?: number
  /**
   * The token that arrived with the newest message, encrypted with a key of the agent. The agent exchanges it to call other
   * agents. It is removed when the task has ended and its children need not be canceled.
   */
  authority?: string
  /** The calls of other agents, in order. */
  children?: ChildTask[]
  /** The request with the newest message, in its trace. The runs and webhooks of the task are steps of the same trace. */
  trace?: TraceContext
}

/** The parties on behalf of which a task runs (spec/delegation.md#callers). */
export interface Delegation {
  /** Client ID of the client. */
  subject: string
  /** Client ID of the agent that sent the message. */
  delegate: string
  /** Client IDs of all agents that act for the client, the sender first. */
  agents: string[]
}

/** A call of another agent. `agent` is absent while the agent that the gateway chooses is unknown. */
export interface ChildTask extends Partial<TaskLink> {
  /** Identifies the call, so that a handler that runs again gets the same task. */
  key: string
  /** The time that the callee was given when it was first called, in milliseconds. */
  deadlineMs?: number
  /** Whether the task continues when its parent ends. */
  detached?: true
  /** Whether the task is known to have ended. */
  ended?: true
}

export type Unfinishedness = 'all' | 'left'

/** A paused task is due when its pause expires, and an ended one when its children are to be canceled. */
export type Dueness = 'paused' | 'ended'

/** The data of an unfinished task that is needed at startup, without the possibly large record. */
export interface UnfinishedTask {
  id: string
  version: number
  owner: string
  state: 'submitted' | 'working'
  /** Whether a worker had a lease on the task, which may therefore have run. */
  leased: boolean
}

export interface ContextRecord {
  id: string
  /** The client's own ID, if the first task of the context has one (`contextName`). */
  name?: string
  owner: string
  createdAt: Timestamp
  updatedAt: Timestamp
}

/**
 * A task for use in a response. A `LazyPart` (`@parley/wire/codecs/lazy-part`) replaces each large part and reads it
 * during serialization. Handlers and the engine use whole records.
 */
export interface TaskOutline {
  task: TaskRecord
  /** Approximate length of the task's JSON with all parts. */
  bytes: number
}

/** Called with the size of a large record before it is read. Throws to reject the read. */
export type Admit = (bytes: number) => void

export interface Page<T> {
  items: T[]
  /** Opaque cursor for reading the next page. Absent on the last page. */
  nextCursor?: string
  /** Number of items on all pages, if the query asks for it. */
  total?: number
}

export type ContextPage = Page<
  ContextRecord & {
    /** Ids of the newest 1,000 tasks at most, oldest first. */
    taskIds: string[]
    /** Number of tasks in the context. */
    taskCount: number
    /** Whether the context has a task that has not ended. */
    busy: boolean
  }
>

export interface TaskQuery {
  owner: string
  contextId?: string
  /** Only tasks in one of these states. */
  states?: readonly TaskState[]
  limit: number
  /** A cursor is valid for one order. */
  cursor?: string
  /** Newest first: by creation (default) or by status. */
  order?: 'created' | 'status'
  /** Only tasks whose status is as new as this or newer. Requires the order by status. */
  statusSince?: Timestamp
  /** Whether the page has a total. */
  count?: boolean
  /** If false, outlines have no artifacts, and their large parts are not read. Default true. */
  includeArtifacts?: boolean
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

/** Whether the ids of a new task are those of `newId`, which no other task can have. Default no. */
export interface GeneratedIds {
  task?: boolean
  context?: boolean
}

/**
 * The persistent state of an agent. Every adapter guarantees that a change is durable once its promise resolves, and
 * that a record changes atomically. No transaction covers two records. The owner is an argument of every `find`,
 * which does not find other owners' records. Absence is `undefined`, never an error. Parts larger than
 * `largePartBytes` are stored separately before their task is committed, and are returned with the task.
 */
export interface Store extends AsyncDisposable {
  /** Whether no other process can write to the store, so that any other holder's lease has expired. */
  readonly exclusive: boolean
  /** Rejects if the storage does not respond or cannot be written. */
  ping(): Promise<void>

  /**
   * Returns false if any owner has a task with this id. Creates the context, or sets its `updatedAt` to the task's
   * `createdAt`.
   * @param generated the ids that were generated for this task. A store need not check that they are new
   * @throws ParleyError ContextNotFound if the context belongs to another owner
   */
  createTask(record: TaskRecord, generated?: GeneratedIds): Promise<boolean>
  /** @param admit called with the size of the whole record before a large record is read */
  findTask(id: string, owner: string, admit?: Admit): Promise<TaskRecord | undefined>
  /** @param admit called with the size of the record without its large parts */
  outlineTask(id: string, owner: string, admit: Admit): Promise<TaskOutline | undefined>
  /** Returns the owner of a task, for callers that have access to the tasks of several owners (`ownsFor`). */
  ownerOf(id: string): Promise<string | undefined>
  /** Loads a task of any owner. Only the engine may call it. */
  loadTask(id: string): Promise<TaskRecord | undefined>
  /**
   * Replaces the record if its version is still `record.version - 1`, and returns whether it did. Also returns false
   * if the id now belongs to a new task. Never shortens the lease of the same holder.
   * @param soon whether to resolve once the change survives this process. A failure of the machine may then lose it, but
   * never without all later changes
   */
  commitTask(record: TaskRecord, soon?: boolean): Promise<boolean>
  /**
   * Lists the newest tasks first. A page of large tasks may be shorter than `limit` (at most 64 MiB plus one task).
   * @throws ParleyError InvalidParams for an invalid cursor
   */
  listTasks(query: TaskQuery): Promise<Page<TaskRecord>>
  /**
   * Returns the same page as outlines, with at most 16 MiB including large parts, plus one task.
   * @param admit called with the size of the page so far, without the large parts
   */
  outlineTasks(query: TaskQuery, admit: Admit): Promise<Page<TaskOutline>>
  /**
   * Lists tasks of all owners by status, newest first. Only for operators.
   * @throws ParleyError InvalidParams for an invalid cursor
   */
  listAllTasks(query: AllTasksQuery): Promise<AllTasksPage>
  /**
   * Returns the tasks to resume at startup, oldest first: submitted or working tasks without a lease, or with one
   * that ended before `now`. In an `exclusive` store, any other holder's lease has ended. `left` selects tasks that a
   * process had started.
   */
  listUnfinished(now: number, ourHolder: string, which?: Unfinishedness): Promise<UnfinishedTask[]>
  /** Returns the number of events of each task. Missing tasks are omitted. */
  countEvents(taskIds: string[]): Promise<Map<string, number>>
  /** Returns the ids of paused or of ended tasks whose `dueAt` has passed. */
  listDue(now: number, limit: number, which?: Dueness): Promise<string[]>
  /**
   * Extends the holder's leases without changing the version. Returns the tasks on which the holder has no lease,
   * because they ended or were taken over.
   */
  renewLeases(holder: string, taskIds: string[], until: number): Promise<string[]>
  /**
   * Records that a process lost this start of a task to another process and kept running. The version does not
   * change. Has no effect in an `exclusive` store or if the task is not running.
   */
  noteSurvived(taskId: string, start: number): Promise<void>
  /**
   * Returns the number of unfinished tasks in each state, and of all tasks that have ever ended in each state,
   * including removed ones. States without tasks are omitted.
   */
  countByState(): Promise<Partial<Record<TaskState, number>>>

  /** Finds a context, which exists from the creation of its first task to the removal of its last. */
  findContext(id: string, owner: string): Promise<ContextRecord | undefined>
  /** Whether `createTask` would throw for this context. */
  isAnothersContext(id: string, owner: string): Promise<boolean>
  /**
   * Lists the most recently changed contexts first, with the ids of their tasks. A page may be shorter than `limit`.
   * @throws ParleyError InvalidParams for an invalid cursor
   */
  listContexts(query: { owner: string; limit: number; cursor?: string }): Promise<ContextPage>
  /** Returns the newest `limit` ended tasks of the context, oldest first; at most 64 MiB plus one task. */
  contextHistory(contextId: string, owner: string, limit: number): Promise<TaskRecord[]>
  /**
   * Removes the context with its tasks and all their data. Returns `busy`, and removes nothing, if one of the tasks
   * has not ended.
   */
  clearContext(id: string, owner: string): Promise<'cleared' | 'busy' | 'absent'>

  /** Stores the key, or returns the unexpired record of the same key if there is one. */
  claimIdempotencyKey(record: IdempotencyRecord): Promise<IdempotencyRecord | undefined>
  /** Replaces the owner's earlier feedback on the task. Has no effect if the task does not exist. */
  saveFeedback(feedback: Feedback): Promise<void>
  findFeedback(taskId: string, owner: string): Promise<Feedback | undefined>
  /**
   * Removes up to `limit` ended tasks whose last change was before `before`, oldest first, with all their data. Also
   * removes expired keys. Returns the number of removed tasks.
   */
  removeEnded(before: Timestamp, limit: number): Promise<number>

  /**
   * Marks a DID's signature as used. Returns true the first time, then false until `until` (milliseconds since 1970).
   * Only one of several concurrent calls, in any process, returns true.
   */
  takeSignature(did: string, signature: Uint8Array, until: number): Promise<boolean>

  /** Persistent push configs. */
  readonly webhooks: WebhookStore

  /** The payment ledger. */
  readonly payments: PaymentStore

  /** The usage of tasks per day and owner. */
  readonly usage: UsageStore
}
