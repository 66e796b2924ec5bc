import type { TaskState } from '@parley/wire/model/task'
import type { Timestamp } from '@parley/wire/model/timestamp'
import type { Page, TaskRecord } from './store.ts'

/** A page of the tasks of all owners, for operators. The newest status comes first. */
export interface AllTasksQuery {
  /** Only tasks of this client, and those that agents created for it. */
  owner?: string
  contextId?: string
  /** Only tasks in one of these states. */
  states?: readonly TaskState[]
  /** Only tasks with a status of this time or later. */
  since?: Timestamp
  /** Only tasks with an older status. */
  until?: Timestamp
  limit: number
  cursor?: string
}

/** The tasks have no artifacts, and a `LazyPart` replaces each large part of a message. */
export type AllTasksPage = Page<TaskRecord>

/** A page of large tasks is shorter than its limit: at most this size, in characters of JSON, plus one task. */
export const allTasksPageMaxBytes = 8 * 1024 * 1024
/** Maximum number of agents in the list of one client. */
export const delegatesMax = 100
