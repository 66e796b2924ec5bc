/** A task that is waiting for a worker. The job only refers to the task; the task's data stays in the store. */
export interface Job {
  taskId: string
  /** The version of the task record. If a task is queued again after a pause, that is a different job. */
  version: number
  /** The task's owner. The owners of waiting tasks take turns. */
  owner: string
}

/** Returns a key that identifies the job. */
export function jobKey({ taskId, version }: Pick<Job, 'taskId' | 'version'>): string {
  return `${taskId}-${version}`
}

/**
 * Decides when and where a task runs. Jobs are delivered at least once. The engine uses compare-and-set to
 * ensure that a task runs only once.
 */
export interface Scheduler extends AsyncDisposable {
  ping(): Promise<void>
  /** Whether the scheduler is starting jobs. */
  readonly running: boolean
  /** The number of waiting tasks in all processes of the agent. */
  readonly waiting: number
  /** The number of tasks that this process is running. */
  readonly active: number
  /** Claims a worker if one is free and no job is waiting. Pass the slot to `enqueue`, or release it. */
  claimSlot(): Slot | undefined
  /**
   * Reserves a place in the queue, which counts as waiting. Pass the place to `enqueue`, or release it.
   * `full` means that the total limit has been reached, and `owner_full` that this owner's limit has been
   * reached. The reservations of one process never exceed the limits. With several processes, concurrent
   * reservations may exceed the owner's limit, and reservations made within the last second may exceed the
   * total limit.
   * @throws ParleyError Unavailable when the queue is unreachable
   */
  reserve(owner: string, limits: QueueLimits): Promise<Slot | 'full' | 'owner_full'>
  enqueue(job: Job, slot?: Slot): void
  /** Removes a job that has not started and frees its place. */
  discard(job: Job): void
  /** Enqueues jobs that are waiting according to the store but that the queue has lost. */
  restore(jobs: readonly Job[]): Promise<void>
  /**
   * Claims the sweep for lost jobs. At most one process succeeds per interval. Rejects when the queue is
   * unreachable.
   */
  claimSweep(forMs: number): Promise<boolean>
  /** Starts running jobs. */
  start(work: Work): void
  /** Stops starting jobs. Resolves when the running jobs have ended or the signal aborts. */
  drain(signal: AbortSignal): Promise<void>
}

/**
 * Runs a task. Must not reject. If another process holds the task, resolves with the time at which to
 * redeliver the job, in milliseconds since 1970.
 */
export type Work = (job: Job) => Promise<number | undefined>

/** Maximum number of waiting tasks. */
export interface QueueLimits {
  all: number
  ofOwner: number
}

export interface Slot {
  /** True for a free worker, and false for a place in the queue. */
  readonly runs: boolean
  release(): void
}
