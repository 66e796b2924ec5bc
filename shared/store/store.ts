import type { Message, PausedState, Task, TaskState } from '../protocol/task.ts'
import type { StoredEvent } from '../protocol/event.ts'
import type { Timestamp } from '../protocol/timestamp.ts'

/** A task with what the server alone knows of it. One record is one document: it changes in one atomic commit. */
export interface TaskRecord extends Task {
  owner: string
  /** Raised by one with each commit; the compare of compare-and-set. */
  version: number
  /** Numbered from 1 without a gap; the last one's number is `events.length`. */
  events: StoredEvent[]
  createdAt: Timestamp
  updatedAt: Timestamp
  /** How often a handler was started for the present message. */
  starts: number
  /** Working time used by finished runs, in milliseconds (a deadline counts working time). */
  workedMs: number
  /** Who runs it and until when (milliseconds since 1970); absent when nobody does. */
  lease?: { holder: string; until: number }
  /** When a pause ends by itself (milliseconds since 1970). */
  dueAt?: number
  referenceTaskIds: string[]
  acceptedOutputModes: string[]
  /** What a bid or payment offered, kept while the task is paused. */
  pausedIn?: PausedState
}

export interface ContextRecord {
  id: string
  owner: string
  createdAt: Timestamp
  updatedAt: Timestamp
}

export interface Page<T> {
  items: T[]
  /** Opaque; give it back to read on. Absent at the end. */
  nextCursor?: string
}

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
 * Everything of an agent that outlives its process. Promises of every adapter: a resolved promise means that the
 * change is durable; a record changes atomically; nothing more (no transaction over two records). The owner is an
 * argument of every `find`: another's thing is not there. Absence is `undefined`, never an error.
 * Parts larger than `largePartBytes` are kept beside the task, before its commit, and come back with it.
 */
export interface Store extends AsyncDisposable {
  /** True when no other process can write here: a lease that is not ours is a dead one. */
  readonly exclusive: boolean
  /** Asks the storage itself; rejects when it does not answer or cannot be written. */
  ping(): Promise<void>

  /** False when the id exists already (whoever owns it). */
  createTask(record: TaskRecord): Promise<boolean>
  findTask(id: string, owner: string): Promise<TaskRecord | undefined>
  /** For the engine alone: whoever owns it. */
  loadTask(id: string): Promise<TaskRecord | undefined>
  /** Replaces the record if its version is still `record.version - 1`; false otherwise. */
  commitTask(record: TaskRecord): Promise<boolean>
  /** Newest first. @throws ParleyError InvalidParams for a cursor that is not one of ours. */
  listTasks(query: TaskQuery): Promise<Page<TaskRecord>>
  /** Tasks to take up at a start: submitted, and working with no lease or one that ended before `now`; oldest first. */
  listUnfinished(now: number, ourHolder: string): Promise<TaskRecord[]>
  /** Ids of paused tasks whose `dueAt` has passed. */
  listDue(now: number, limit: number): Promise<string[]>
  /** Prolongs the leases of the holder on these tasks. No version is raised. */
  renewLeases(holder: string, taskIds: string[], until: number): Promise<void>
  countByState(): Promise<Partial<Record<TaskState, number>>>

  /** Makes the context unless it exists; returns the one that is there, whoever owns it. */
  openContext(record: ContextRecord): Promise<ContextRecord>
  findContext(id: string, owner: string): Promise<ContextRecord | undefined>
  /** Newest change first, with the ids of their tasks, oldest first; contexts without tasks are left out. */
  listContexts(query: {
    owner: string
    limit: number
    cursor?: string
  }): Promise<Page<ContextRecord & { taskIds: string[]; busy: boolean }>>
  /** The newest `limit` ended tasks of the context, oldest first. */
  contextHistory(contextId: string, owner: string, limit: number): Promise<TaskRecord[]>
  /**
   * Removes the context with its tasks and all that belongs to them. `busy` when a task of it has not ended: nothing
   * is removed then.
   */
  clearContext(id: string, owner: string): Promise<'cleared' | 'busy' | 'absent'>

  /** Remembers the key; returns the record that was there before (not expired), else undefined. */
  claimIdempotencyKey(record: IdempotencyRecord): Promise<IdempotencyRecord | undefined>
  /** Replaces earlier feedback of the same owner on the task. */
  saveFeedback(feedback: Feedback): Promise<void>
  findFeedback(taskId: string, owner: string): Promise<Feedback | undefined>
  /** Removes ended tasks last changed before `before`, at most `limit`, and expired keys. Returns how many tasks. */
  removeEnded(before: Timestamp, limit: number): Promise<number>
}

export type { Message }
